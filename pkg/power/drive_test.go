// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// controls is a machine that obeys some commands, after a while.
type controls struct {
	state energy.State
	obeys map[power.Command]time.Duration // it ignores others
	fails map[power.Command]error
	read  func(n int, state energy.State) (power.Reading, error) // the nth answer; nil means the true state
	next  energy.State                                           // the state that it reaches at the time at
	at    time.Time
	reads int
	sent  []power.Command
}

func (b *controls) Read(context.Context) (power.Reading, error) {
	if b.next != "" && !time.Now().Before(b.at) {
		b.state, b.next = b.next, ""
	}
	b.reads++
	if b.read != nil {
		return b.read(b.reads, b.state)
	}
	return power.Reading{State: b.state}, nil
}

func (b *controls) Send(_ context.Context, p power.Command) error {
	b.sent = append(b.sent, p)
	to := map[power.Command]energy.State{power.Start: energy.On, power.Shutdown: energy.Off, power.Cut: energy.Off, power.Sleep: energy.Standby}[p]
	if after, ok := b.obeys[p]; ok && b.next != to {
		b.next, b.at = to, time.Now().Add(after)
	}
	return b.fails[p]
}

func TestBringingAMachineToAState(t *testing.T) {
	silent, never := errors.New("the BMC is silent"), fault.New(fault.Invalid, "it cannot")
	all := map[power.Command]time.Duration{power.Start: 0, power.Shutdown: 20 * time.Second, power.Cut: 0, power.Sleep: 0}
	deaf := map[power.Command]time.Duration{}
	stubborn := map[power.Command]time.Duration{power.Start: 0, power.Cut: time.Second}
	soft, hard := power.PowerOffMode{Patience: time.Minute}, power.PowerOffMode{Patience: time.Minute, Hard: true}
	flap := func(n int, s energy.State) (power.Reading, error) {
		return power.Reading{State: []energy.State{energy.On, energy.Off}[n%2]}, nil
	}
	first := func(wrong int, err error) func(int, energy.State) (power.Reading, error) {
		return func(n int, s energy.State) (power.Reading, error) {
			if n > 2 && n <= 2+wrong {
				return power.Reading{}, err
			}
			return power.Reading{State: s}, nil
		}
	}
	always := func(r power.Reading, err error) func(int, energy.State) (power.Reading, error) {
		return func(int, energy.State) (power.Reading, error) { return r, err }
	}
	for name, tc := range map[string]struct {
		from    energy.State
		to      energy.State
		how     power.PowerOffMode
		machine controls
		sent    string // with … between the first and the last of equal ones
		err     string // empty: the machine has the state
		kind    fault.Kind
	}{
		"on, and it is off":                 {energy.Off, energy.On, soft, controls{obeys: all}, "[start]", "", ""},
		"on, and it is on":                  {energy.On, energy.On, soft, controls{obeys: all}, "[]", "", ""},
		"on, and it hangs":                  {energy.On, energy.On, hard, controls{obeys: all}, "[cut start]", "", ""},
		"off":                               {energy.On, energy.Off, soft, controls{obeys: all}, "[shutdown]", "", ""},
		"off, and it is off":                {energy.Off, energy.Off, hard, controls{obeys: all}, "[]", "", ""},
		"off at once":                       {energy.On, energy.Off, power.PowerOffMode{Hard: true}, controls{obeys: all}, "[cut]", "", ""},
		"off, stubborn":                     {energy.On, energy.Off, soft, controls{obeys: stubborn}, "[shutdown]", "has not stopped within 1m0s", fault.Unavailable},
		"off, stubborn, hard":               {energy.On, energy.Off, hard, controls{obeys: stubborn}, "[shutdown cut]", "", ""},
		"off, and it cannot soft, hard":     {energy.On, energy.Off, hard, controls{obeys: stubborn, fails: map[power.Command]error{power.Shutdown: never}}, "[shutdown cut]", "", ""},
		"standby":                           {energy.On, energy.Standby, soft, controls{obeys: all}, "[sleep]", "", ""},
		"from standby":                      {energy.Standby, energy.On, soft, controls{obeys: all}, "[start]", "", ""},
		"on, deaf":                          {energy.Off, energy.On, soft, controls{obeys: deaf}, "[start … start]", `still reports "off"`, fault.Unavailable},
		"what it cannot is not tried again": {energy.Off, energy.On, soft, controls{fails: map[power.Command]error{power.Start: never}}, "[start]", "it cannot", fault.Invalid},
		"what fails once is tried again":    {energy.Off, energy.On, soft, controls{obeys: map[power.Command]time.Duration{power.Start: 40 * time.Second}, fails: map[power.Command]error{power.Start: silent}}, "[start start]", "", ""},
		"its answers stop for a while":      {energy.On, energy.Off, soft, controls{obeys: all, read: first(6, silent)}, "[shutdown]", "", ""},
		"it does not answer at first":       {energy.On, energy.Off, hard, controls{obeys: all, read: always(power.Reading{}, silent)}, "[]", "nothing was done: the BMC is silent", fault.Internal},
		"it does not tell":                  {energy.On, energy.Off, hard, controls{obeys: all, read: always(power.Reading{}, nil)}, "[]", "does not report", fault.Unavailable},
		"it flaps":                          {energy.On, energy.Off, hard, controls{obeys: all, read: flap}, "[]", "another power state at each read", fault.Unavailable},
		"nobody may":                        {energy.On, energy.Off, hard, controls{obeys: all, read: always(power.Reading{State: energy.On, Untouchable: "it is repaired"}, nil)}, "[]", "it is repaired", fault.Denied},
		"it says once that it is off and goes on": {energy.On, energy.Off, soft, controls{obeys: deaf, read: func(n int, s energy.State) (power.Reading, error) {
			if n == 4 {
				s = energy.Off
			}
			return power.Reading{State: s}, nil
		}}, "[shutdown]", "has not stopped", fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := tc.machine
				b.state = tc.from
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				err := power.Drive(ctx, &b, tc.to, tc.how, power.PollInterval{})
				if tc.err == "" && (err != nil || b.state != tc.to) {
					t.Errorf("the state is %s: %v", b.state, err)
				}
				if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || fault.Of(err).Kind != tc.kind) {
					t.Errorf("got %v, want %s with %q", err, tc.kind, tc.err)
				}
				if got := fmt.Sprint(b.sent); got != tc.sent && fmt.Sprintf("[%s … %s]", b.sent[0], b.sent[len(b.sent)-1]) != tc.sent {
					t.Errorf("sent %s, want %s", got, tc.sent)
				}
			})
		})
	}
}

// watched is a machine that reports how many commands it has received.
type watched struct {
	*controls
	pressed func(times int)
}

func (w watched) Send(ctx context.Context, p power.Command) error {
	err := w.controls.Send(ctx, p)
	w.pressed(len(w.sent))
	return err
}

func TestWhatAMachineSaidLastIsToldWhenTheTimeEndsAfterAnotherPress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		deaf := watched{&controls{state: energy.On}, func(times int) {
			if times == 2 {
				time.AfterFunc(time.Millisecond, cancel)
			}
		}}
		err := power.Drive(ctx, deaf, energy.Off, power.PowerOffMode{Hard: true}, power.PollInterval{})
		if err == nil || !strings.Contains(err.Error(), `command cut: the machine still reports "on"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAProgramIsBoundInTimeAndOutputAndSeesNoEnvironment(t *testing.T) {
	t.Setenv("SECRET", "hush")
	for name, tc := range map[string]struct {
		argv []string
		out  string
		err  string
	}{
		"its output":          {[]string{"/bin/echo", "$HOME; on"}, "$HOME; on\n", ""},
		"its late output":     {[]string{"/bin/sh", "-c", "setsid sh -c 'sleep 2; echo on' &"}, "on\n", ""},
		"its environment":     {[]string{"/usr/bin/env"}, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C\nHOME=/\n", ""},
		"its complaint":       {[]string{"/bin/sh", "-c", "echo first >&2; echo no such machine >&2; exit 3"}, "", "/bin/sh ended with exit status 3: no such machine"},
		"one that is missing": {[]string{"/no/such/program", "secret"}, "", "/no/such/program cannot be run"},
		"one by name":         {[]string{"no-such-program"}, "", "install it"},
		"one that never ends": {[]string{"/bin/sh", "-c", "sleep 100 & wait"}, "", "/bin/sh did not end in time"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := patience
			if strings.Contains(tc.err, "in time") {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			out, err := power.RunProgram(ctx, tc.argv)
			if out != tc.out || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", out, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v names the arguments", err)
			}
		})
	}
	out, err := power.RunProgram(t.Context(), []string{"/bin/sh", "-c", "yes | head -c 10000000"})
	if err != nil || len(out) != 64<<10 {
		t.Errorf("%d bytes of 10 MB were kept, %v", len(out), err)
	}
}
