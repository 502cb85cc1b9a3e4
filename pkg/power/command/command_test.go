// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/command"
)

// site writes the programs of a site, whose machine is a file.
func site(t *testing.T) (o command.Options, machine string) {
	t.Helper()
	folder := t.TempDir()
	machine = filepath.Join(folder, "h1; rm -rf x")
	tool := filepath.Join(folder, "tool")
	script := "#!/bin/sh\n[ \"$1\" = status ] && { cat \"$2\"; exit; }\necho \"$1 200\" >\"$2\"\n"
	if err := os.WriteFile(tool, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	arguments := func(word string) []string { return []string{tool, word, folder + "/{host}"} }
	return command.Options{
		Host: "h1; rm -rf x", On: arguments("on"), Off: arguments("off"), Standby: arguments("standby"), Status: arguments("status"),
		Poll: power.PollInterval{Read: time.Millisecond},
	}, machine
}

func write(t *testing.T, machine, text string) {
	t.Helper()
	if err := os.WriteFile(machine, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProgramsSwitchAMachine(t *testing.T) {
	o, file := site(t)
	m, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "on\n")
	for _, to := range []energy.State{energy.Off, energy.On, energy.Standby, energy.On} {
		if err := m.Switch(t.Context(), to, power.PowerOffMode{Patience: time.Minute}); err != nil {
			t.Fatalf("to %s: %v", to, err)
		}
		if r, err := m.Read(t.Context()); err != nil || r.State != to || r.Watts != 200 {
			t.Errorf("to %s: read %+v, %v", to, r, err)
		}
	}
	if len(m.States()) != 3 {
		t.Errorf("states %v", m.States())
	}
	o.Standby = nil
	if m, err = command.New(o); err != nil || len(m.States()) != 2 {
		t.Errorf("without a program for standby: %v, %v", m.States(), err)
	}
	if err := m.Send(t.Context(), power.Cut); !fault.Is(err, fault.Invalid) {
		t.Errorf("without a program to cut: %v", err)
	}
}

func TestAStatusThatIsNotUnderstoodIsAnError(t *testing.T) {
	o, file := site(t)
	m, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"", "ON", "onn", "on off x", "off 12W", "on -1", "on NaN", "on 1e99", "unknown", "\x00on", strings.Repeat("on ", 50000)} {
		write(t, file, said)
		if r, err := m.Read(t.Context()); err == nil || r.State != "" || len(err.Error()) > 300 {
			t.Errorf("%.20q is %+v, %v", said, r, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Read(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a program that fails: %v", err)
	}
}

func TestAProgramThatHangsIsKilledAtItsTimeout(t *testing.T) {
	o, _ := site(t)
	o.Status, o.Timeout = []string{"/bin/sleep", "100"}, 50*time.Millisecond
	m, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "did not end in time") {
		t.Errorf("got %v", err)
	}
}

func TestProgramsThatAreMissingAreRefused(t *testing.T) {
	o, _ := site(t)
	for name, change := range map[string]func(o *command.Options){
		"on": func(o *command.Options) { o.On = nil }, "off": func(o *command.Options) { o.Off = nil },
		"status": func(o *command.Options) { o.Status = []string{} }, "absolute": func(o *command.Options) { o.Cut = []string{"cut"} },
	} {
		changed := o
		change(&changed)
		if _, err := command.New(changed); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
