// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// imported runs `import blazar` with args; the takeover reports r.
func imported(t *testing.T, r app.TakenOver, args ...string) (asked app.TakeOver, out string, err error) {
	t.Helper()
	command := newImportCommand(func(_ context.Context, a app.TakeOver) (app.TakenOver, error) { asked = a; return r, nil })
	var text strings.Builder
	command.SetOut(&text)
	command.SetIn(strings.NewReader(" mysql://db/secret\n"))
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"blazar", "--from", "mysql://db/blazar"}, args...))
	err = command.ExecuteContext(t.Context())
	return asked, text.String(), err
}

func TestTheImportShowsLeasesFindingsAndWhatHappensInTheCloud(t *testing.T) {
	r := app.TakenOver{
		Leases: []reservation.LeaseRecord{{
			Lease:        reservation.Lease{ID: "l", Name: "one", ProjectID: "p", Span: span.Span{Start: 0, End: 60}},
			Reservations: []reservation.Reservation{{Status: "active", Claims: []reservation.Claim{{Host: "b"}, {Host: "a"}}}},
		}},
		Servers: map[string]string{"s": "r"}, Cloud: []string{"it stays"}, Refused: 1,
		Findings: []takeover.Finding{{Kind: "error", Text: "it failed", Remedy: "delete it", Stops: true}, {Kind: "over", Text: "it has ended"}},
	}
	const table = `LEASE  NAME  PROJECT  STATUS  START                 END                   HOSTS
l      one   p        active  1970-01-01T00:00:00Z  1970-01-01T00:01:00Z  a b

cloud: it stays
refused: error: it failed
  remedy: delete it
note: over: it has ended
1 leases with 1 reservations, 0 hosts of the pool and 1 servers would be taken over
`
	_, out, err := imported(t, r, "--dry-run")
	if d := cmp.Diff(table, out); d != "" {
		t.Error(d)
	}
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("with a refusal: %v", err)
	}
}

func TestTheURLOfBlazarsDatabaseMayComeFromStandardInput(t *testing.T) {
	if asked, _, err := imported(t, app.TakenOver{Done: true}, "--from", "-"); err != nil || asked.From != "mysql://db/secret" {
		t.Errorf("it takes over from %q (%v)", asked.From, err)
	}
}

func TestTheImportTakesTheOperatorsChoices(t *testing.T) {
	asked, _, err := imported(t, app.TakenOver{Done: true}, "--leave", "error,double-booked", "--history", "--schema", "abc")
	want := app.TakeOver{From: "mysql://db/blazar", Schema: "abc", Leave: []takeover.Kind{takeover.InError, takeover.DoubleBooked}, History: true}
	if d := cmp.Diff(want, asked); d != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, d)
	}
	for _, wrong := range [][]string{{"--leave", "filter"}, {"-f", "yaml"}} {
		if _, _, err := imported(t, app.TakenOver{}, wrong...); !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
