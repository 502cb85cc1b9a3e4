// SPDX-License-Identifier: Apache-2.0

package ipmi_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/ipmi"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func machineOf(t *testing.T, o ipmi.Options) *ipmi.Machine {
	t.Helper()
	o.Poll = power.PollInterval{Read: 50 * time.Millisecond, Resend: time.Second}
	m, err := ipmi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func options(b *labtest.BMC) ipmi.Options {
	return ipmi.Options{Address: "127.0.0.1", Port: b.Port, User: labtest.BMCUser, PasswordFile: b.PasswordFile(), Cipher: 3, Sensor: "Watts"}
}

func TestARealBMCIsReadAndSwitched(t *testing.T) {
	bmc := labtest.StartBMC(t)
	m := machineOf(t, options(bmc))
	for _, to := range []energy.State{energy.On, energy.Off, energy.Off, energy.On} {
		if err := m.Switch(t.Context(), to, power.PowerOffMode{Patience: 2 * time.Minute}); err != nil {
			t.Fatalf("to %s: %v", to, err)
		}
		if r, err := m.Read(t.Context()); err != nil || r.State != to || bmc.On() != (to == energy.On) {
			t.Errorf("to %s: got %+v, %v; on is %v", to, r, err, bmc.On())
		}
	}
	if orders := bmc.Orders(); len(orders) != 2 {
		t.Errorf("the BMC got the orders %q; a state that is already reached needs none", orders)
	}
	bmc.Set("reading", 240)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if r, err := m.Read(ctx); err != nil {
			t.Fatalf("the BMC does not report watts: %v", err)
		} else if r.Watts == 240 {
			break
		}
	}
}

func TestAnOperatingSystemThatDoesNotStop(t *testing.T) {
	bmc := labtest.StartBMC(t)
	bmc.Set("stubborn", 1)
	m := machineOf(t, options(bmc))
	err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Patience: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "has not stopped within 300ms") || !bmc.On() {
		t.Errorf("softly: %v, on is %v", err, bmc.On())
	}
	if err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Patience: 300 * time.Millisecond, Hard: true}); err != nil || bmc.On() {
		t.Errorf("hard: %v, on is %v", err, bmc.On())
	}
}

func TestABMCThatDoesNothing(t *testing.T) {
	bmc := labtest.StartBMC(t)
	bmc.Set("power", 0)
	bmc.Set("broken", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	var looking sync.WaitGroup
	looking.Go(func() {
		defer cancel()
		for len(bmc.Orders()) < 2 && job.Pause(ctx, 50*time.Millisecond) == nil {
		}
	})
	err := machineOf(t, options(bmc)).Switch(ctx, energy.On, power.PowerOffMode{})
	cancel()
	looking.Wait()
	if err == nil || !strings.Contains(err.Error(), `still reports "off"`) {
		t.Errorf("got %v", err)
	}
	if orders := bmc.Orders(); len(orders) < 2 {
		t.Errorf("the BMC got the orders %q, want repeated ones", orders)
	}
}

func TestABMCThatIsSlowAwayOrKnowsAnotherPassword(t *testing.T) {
	bmc := labtest.StartBMC(t)
	wrong := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(wrong, []byte("not the password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(o *ipmi.Options)
		says   string
	}{
		"away":             {func(o *ipmi.Options) { o.Port = 9; o.Timeout = time.Minute }, "127.0.0.1 does not answer"},
		"another password": {func(o *ipmi.Options) { o.PasswordFile = wrong }, "127.0.0.1 answers, and refuses the password"},
		"another user":     {func(o *ipmi.Options) { o.User = "nobody" }, "127.0.0.1 answers, and has no such user"},
		"another suite":    {func(o *ipmi.Options) { o.Cipher = 17 }, "127.0.0.1 answers, and does not know the cipher suite"},
		"no password file": {func(o *ipmi.Options) { o.PasswordFile += ".gone" }, "the password file cannot be read"},
		"slow":             {func(o *ipmi.Options) { bmc.Set("delay", 3); o.Timeout = time.Second }, "127.0.0.1 cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(bmc)
			tc.change(&o)
			_, err := machineOf(t, o).Read(t.Context())
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if err != nil && (strings.Contains(err.Error(), "not the password") || strings.Contains(err.Error(), labtest.BMCPassword)) {
				t.Errorf("the error has the password: %v", err)
			}
			bmc.Set("delay", 0)
		})
	}
}

// ipmi_sim does not know suite 17, and ignores the question for the suites that it knows.
func TestWithoutACipherSuiteTheBMCIsNotAskedForOne(t *testing.T) {
	bmc := labtest.StartBMC(t)
	o := options(bmc)
	o.Cipher = 0
	m := machineOf(t, o)
	for range 2 {
		if r, err := m.Read(t.Context()); err != nil || r.State != energy.On {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	o.Program = tool(t, nil) // every command fails
	if _, err := machineOf(t, o).Read(t.Context()); err == nil {
		t.Error("a machine without a session is read")
	}
	called, err := os.ReadFile(o.Program + ".called")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(called)) {
		if !strings.Contains(line, " -C ") {
			t.Errorf("called without a cipher suite: %s", line)
		}
	}
}

// tool writes a program in the place of ipmitool that prints these texts, by the end of its
// command line.
func tool(t *testing.T, says map[string]string) string {
	t.Helper()
	var script strings.Builder
	script.WriteString("#!/bin/sh\necho \"$*\" >>\"$0.called\"\ncase \"$*\" in\n")
	for ending, text := range says {
		fmt.Fprintf(&script, "*%q) printf %%s '%s' ;;\n", ending, text)
	}
	script.WriteString("*) exit 1 ;;\nesac\n")
	path := filepath.Join(t.TempDir(), "ipmitool")
	if err := os.WriteFile(path, []byte(script.String()), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnswersThatAreNotUnderstood(t *testing.T) {
	for said, want := range map[string]energy.State{
		"Chassis Power is on\n": energy.On, "Chassis Power is off": energy.Off,
		"": "", "on": "", "Chassis Power is unknown": "", "Chassis Power is on\nChassis Power is off": "", "Error: Unable to establish session": "",
	} {
		m := machineOf(t, ipmi.Options{Address: "bmc", User: "u", PasswordFile: "/p", Program: tool(t, map[string]string{"chassis power status": said})})
		r, err := m.Read(t.Context())
		if r.State != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", said, r.State, err)
		}
	}
}

func TestWattsAreReadBySensorOrDCMI(t *testing.T) {
	dcmi := "\n    Instantaneous power reading:                   212 Watts\n    Minimum during sampling period:                180 Watts\n"
	for _, tc := range []struct {
		sensor, ending, says string
		watts                float64
	}{
		{"Watts", "-c sensor reading Watts", "Watts,180\n", 180},
		{"Watts", "-c sensor reading Watts", "Watts,na\n", 0},
		{"Watts", "-c sensor reading Watts", "Watts,-3\n", 0},
		{"Watts", "-c sensor reading Watts", "Sensor \"Watts\" not found!\n", 0},
		{"Other", "-c sensor reading Watts", "Watts,180\n", 0},
		{"dcmi", "dcmi power reading", dcmi, 212},
		{"dcmi", "dcmi power reading", "Instantaneous power reading: nan Watts", 0},
		{"", "-c sensor reading Watts", "Watts,180\n", 0},
	} {
		program := tool(t, map[string]string{"chassis power status": "Chassis Power is on", tc.ending: tc.says})
		m := machineOf(t, ipmi.Options{Address: "bmc", User: "u", PasswordFile: "/p", Sensor: tc.sensor, Program: program})
		if r, err := m.Read(t.Context()); err != nil || r.Watts != tc.watts || r.State != energy.On {
			t.Errorf("%+v: got %+v, %v", tc, r, err)
		}
	}
}

func TestHowIpmitoolIsCalled(t *testing.T) {
	program := tool(t, map[string]string{"chassis power status": "Chassis Power is on"})
	m := machineOf(t, ipmi.Options{Address: "bmc", User: "u", PasswordFile: "/p", Privilege: "OPERATOR", Cipher: 17, Program: program})
	if _, err := m.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(program + ".called")
	if want := "-I lanplus -H bmc -p 623 -U u -f /p -L OPERATOR -N 2 -R 2 -C 17 chassis power status\n"; err != nil || string(got) != want {
		t.Errorf("got %q, want %q, %v", got, want, err)
	}
	if err := m.Send(t.Context(), power.Sleep); !fault.Is(err, fault.Invalid) || slices.Contains(m.States(), energy.Standby) {
		t.Errorf("standby: %v, states %v", err, m.States())
	}
	for _, missing := range []ipmi.Options{{User: "u", PasswordFile: "/p"}, {Address: "a", PasswordFile: "/p"}, {Address: "a", User: "u"}} {
		if _, err := ipmi.New(missing); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v", missing, err)
		}
	}
}
