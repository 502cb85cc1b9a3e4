// SPDX-License-Identifier: Apache-2.0

package redfish_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/power/redfish"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// patience bounds every answer of a BMC and every order.
const patience = 2 * time.Minute

func options(b *labtest.Redfish) redfish.Options {
	return redfish.Options{
		URL: b.URL, User: labtest.BMCUser, PasswordFile: b.PasswordFile(), CAFile: b.CAFile(),
		Timeout: patience, Poll: power.PollInterval{Read: 5 * time.Millisecond, Resend: 100 * time.Millisecond},
	}
}

func machineOf(t *testing.T, o redfish.Options) *redfish.Machine {
	t.Helper()
	m, err := redfish.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMachineIsReadAndSwitched(t *testing.T) {
	for name, tc := range map[string]struct {
		bmc    labtest.RedfishOptions
		change func(o *redfish.Options)
		resets string
		on     float64
	}{
		"as most":                {labtest.RedfishOptions{}, nil, "[GracefulShutdown On]", 210},
		"values in ActionInfo":   {labtest.RedfishOptions{ActionInfo: true}, nil, "[GracefulShutdown On]", 210},
		"with tasks":             {labtest.RedfishOptions{Tasks: true}, nil, "[GracefulShutdown On]", 210},
		"watts in Power":         {labtest.RedfishOptions{OldWatts: true}, nil, "[GracefulShutdown On]", 210},
		"without watts":          {labtest.RedfishOptions{NoWatts: true}, nil, "[GracefulShutdown On]", 0},
		"ForceOn alone":          {labtest.RedfishOptions{Resets: []string{"ForceOn", "ForceOff", "GracefulShutdown", "PushPowerButton"}}, nil, "[GracefulShutdown ForceOn]", 210},
		"no soft stop":           {labtest.RedfishOptions{Resets: []string{"On", "ForceOff"}}, nil, "[ForceOff On]", 210},
		"one of several systems": {labtest.RedfishOptions{Systems: 2}, func(o *redfish.Options) { o.System = "/redfish/v1/Systems/1" }, "[GracefulShutdown On]", 210},
		"with a session":         {labtest.RedfishOptions{}, func(o *redfish.Options) { o.Session = true }, "[GracefulShutdown On]", 210},
		"any certificate":        {labtest.RedfishOptions{}, func(o *redfish.Options) { o.CAFile, o.Insecure = "", true }, "[GracefulShutdown On]", 210},
	} {
		t.Run(name, func(t *testing.T) {
			bmc := labtest.StartRedfish(t, tc.bmc)
			o := options(bmc)
			if tc.change != nil {
				tc.change(&o)
			}
			m := machineOf(t, o)
			for _, to := range []energy.State{energy.On, energy.Off, energy.Off, energy.On} {
				if err := m.Switch(t.Context(), to, power.PowerOffMode{Patience: 5 * time.Second, Hard: to == energy.Off}); err != nil {
					t.Fatalf("to %s: %v", to, err)
				}
				if r, err := m.Read(t.Context()); err != nil || r.State != to || bmc.On() != (to == energy.On) || to == energy.On && r.Watts != tc.on {
					t.Errorf("to %s: got %+v, %v; on is %v", to, r, err, bmc.On())
				}
			}
			if got := fmt.Sprint(bmc.Resets()); got != tc.resets {
				t.Errorf("resets %s, want %s", got, tc.resets)
			}
		})
	}
}

func TestASessionIsKeptRenewedAndEnded(t *testing.T) {
	bmc := labtest.StartRedfish(t, labtest.RedfishOptions{})
	o := options(bmc)
	o.Session = true
	m := machineOf(t, o)
	read := func() {
		t.Helper()
		if r, err := m.Read(t.Context()); err != nil || r.State != energy.On {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	read()
	read()
	if opened, open := bmc.EndSessions(); opened != 1 || open != 1 {
		t.Errorf("after two questions %d sessions were opened and %d are open", opened, open)
	}
	read()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if opened, open := bmc.EndSessions(); opened != 2 || open != 0 {
		t.Errorf("in the end %d sessions were opened and %d are open", opened, open)
	}
}

func TestABMCInTrouble(t *testing.T) {
	hard, soft := power.PowerOffMode{Patience: 100 * time.Millisecond, Hard: true}, power.PowerOffMode{Patience: 100 * time.Millisecond}
	for name, tc := range map[string]struct {
		trouble labtest.RedfishTrouble
		how     power.PowerOffMode
		says    energy.State // of Read; empty means none
		problem string       // of Read; empty means none
		failure string       // of Switch to off; empty means that it is off
		off     bool         // the true state
	}{
		"it answers 500":         {labtest.RedfishTrouble{Status: 500}, hard, "", "HTTP status 500", "nothing was done: the BMC", false},
		"it refuses":             {labtest.RedfishTrouble{Status: 401}, hard, "", "refuses the user admin", "refuses the user", false},
		"it is slow":             {labtest.RedfishTrouble{Delay: time.Minute}, hard, "", "did not answer in time", "did not answer in time", false},
		"it closes":              {labtest.RedfishTrouble{Closes: true}, hard, "", "cannot be reached", "nothing was done", false},
		"it talks garbage":       {labtest.RedfishTrouble{Garbage: true}, hard, "", "cannot be reached", "nothing was done", false},
		"it says nothing":        {labtest.RedfishTrouble{Empty: true}, hard, "", "systems", "nothing was done", false},
		"it flaps":               {labtest.RedfishTrouble{Flaps: true}, hard, energy.On, "", "another power state at each read", false},
		"it says the opposite":   {labtest.RedfishTrouble{Opposite: true}, hard, energy.Off, "", "", false},
		"it does nothing":        {labtest.RedfishTrouble{Deaf: true}, hard, energy.On, "", `command cut: the machine still reports "on"`, false},
		"it is stuck":            {labtest.RedfishTrouble{Stuck: true}, hard, energy.On, "", "command cut", false},
		"it refuses resets":      {labtest.RedfishTrouble{Refuses: true}, soft, energy.On, "", "HTTP status 409", false},
		"its tasks fail":         {labtest.RedfishTrouble{Fails: true}, soft, energy.On, "", "ended in state Exception: the task is over", false},
		"it is stubborn":         {labtest.RedfishTrouble{Stubborn: true}, soft, energy.On, "", "has not stopped within 100ms", false},
		"it is stubborn and cut": {labtest.RedfishTrouble{Stubborn: true}, hard, energy.On, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bmc := labtest.StartRedfish(t, labtest.RedfishOptions{Tasks: true})
			bmc.Trouble(tc.trouble)
			o := options(bmc)
			if tc.trouble.Delay > 0 {
				o.Timeout = 2 * time.Second
			}
			m := machineOf(t, o)
			r, err := m.Read(t.Context())
			if r.State != tc.says || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("read %+v, %v", r, err)
			}
			limit := patience
			if strings.Contains(tc.failure, "command cut") { // Switch repeats it until its time is over
				limit = 5 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err = m.Switch(ctx, energy.Off, tc.how)
			if (err == nil) != (tc.failure == "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("switch: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), labtest.BMCPassword) {
				t.Errorf("the error has the password: %v", err)
			}
			if bmc.On() == tc.off {
				t.Errorf("on is %v", bmc.On())
			}
		})
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	good := redfish.Options{URL: "https://bmc", User: "u", PasswordFile: "/p"}
	empty := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *redfish.Options){
		"no url":          func(o *redfish.Options) { o.URL = "" },
		"a password":      func(o *redfish.Options) { o.URL = "https://u:p@bmc" },
		"a path":          func(o *redfish.Options) { o.URL = "https://bmc/redfish/v1" },
		"another scheme":  func(o *redfish.Options) { o.URL = "ftp://bmc" },
		"no user":         func(o *redfish.Options) { o.User = "" },
		"no password":     func(o *redfish.Options) { o.PasswordFile = "" },
		"no system path":  func(o *redfish.Options) { o.System = "1" },
		"no ca":           func(o *redfish.Options) { o.CAFile = "/none" },
		"an empty cafile": func(o *redfish.Options) { o.CAFile = empty },
	} {
		o := good
		change(&o)
		if _, err := redfish.New(o); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := redfish.New(good); err != nil {
		t.Error(err)
	}
}

func TestACertificateThatNobodyKnowsIsNotBelieved(t *testing.T) {
	bmc := labtest.StartRedfish(t, labtest.RedfishOptions{})
	o := options(bmc)
	o.CAFile = ""
	if _, err := machineOf(t, o).Read(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	o = options(bmc)
	o.PasswordFile += ".gone"
	if _, err := machineOf(t, o).Read(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "password") {
		t.Errorf("without the password file: got %v", err)
	}
}
