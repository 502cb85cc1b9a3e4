// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// novaMode runs `nova mode` with args; the command finds m.
func novaMode(t *testing.T, m app.NovaMode, args ...string) (string, error) {
	t.Helper()
	command := newNovaCommand(func(context.Context) (app.NovaMode, error) { return m, nil })
	var out strings.Builder
	command.SetOut(&out)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"mode"}, args...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestNovaModeShowsWhatItFinds(t *testing.T) {
	found := app.NovaMode{
		Mode: "interpose", Nova: app.Topic{VirtualHost: "/", Exists: true, Waiting: 2, Consumers: 3, Almanac: 1},
		Behind:   &app.Topic{VirtualHost: "behind", Exists: true, Consumers: 4},
		Replicas: []app.Reader{{Machine: "ctl-1", Consumers: 1}, {Machine: "ctl-2"}},
		Findings: []app.Finding{{Well: true, Text: "All is well."}, {Text: "It is not."}},
	}
	const table = `mode: interpose

VIRTUAL HOST  CONSUMERS  OF ALMANAC  WAITING
/             3          1           2
behind        4          0           0

almanacd on ctl-1: 1 of them
almanacd on ctl-2: 0 of them

well   All is well.
wrong  It is not.
`
	out, err := novaMode(t, found)
	if diff := cmp.Diff(table, out); diff != "" {
		t.Error(diff)
	}
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("with a problem: got %v", err)
	}
	out, err = novaMode(t, found, "-f", "json")
	var read app.NovaMode
	if broken := json.Unmarshal([]byte(out), &read); broken != nil || err == nil {
		t.Errorf("%v, %v", broken, err)
	}
	if diff := cmp.Diff(found, read); diff != "" {
		t.Error(diff)
	}
	found.Findings = found.Findings[:1]
	if out, err := novaMode(t, found); err != nil || strings.Contains(out, "wrong") {
		t.Errorf("without a problem: %v\n%s", err, out)
	}
	if out, err := novaMode(t, found, "-f", "jsn"); err == nil || !strings.Contains(err.Error(), `did you mean "json"`) || out != "" {
		t.Errorf("got %v\n%s", err, out)
	}
}
