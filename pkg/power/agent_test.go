// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// becomes fails unless an outcome has this progress and a reason with these words.
func becomes(t *testing.T, got energy.Outcome, want energy.Progress, words string) {
	t.Helper()
	if got.Progress != want || !strings.Contains(got.Reason, words) {
		t.Errorf("got %s (%s), want %s with %q", got.Progress, got.Reason, want, words)
	}
}

func TestAnOrderThatIsSentTwiceIsCarriedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{state: energy.On}
		a, _ := agentFor(t, "", m)
		o := numbered(1, "h1", energy.Off)
		becomes(t, give(t, a, o), energy.OrderAccepted, "")
		synctest.Wait()
		becomes(t, give(t, a, o), energy.OrderDone, "")
		m.state = energy.On // as if by its power button
		becomes(t, give(t, a, o), energy.OrderDone, "")
		synctest.Wait()
		if got := m.switched(); got != "[off]" {
			t.Errorf("the machine was switched %v", got)
		}
	})
}

func TestWhatAnAgentRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *energy.Order)
		reason string
	}{
		"a deadline that is over":        {func(o *energy.Order) { o.Deadline = at(-1) }, "had to begin by"},
		"an order without a deadline":    {func(o *energy.Order) { o.Deadline = 0 }, "had to begin by"},
		"a number that was taken":        {func(o *energy.Order) { o.Number = 5 }, "not newer than order 5"},
		"a number before the last taken": {func(o *energy.Order) { o.Number = 4 }, "not newer than order 5"},
		"an epoch that is over":          {func(o *energy.Order) { o.Epoch = 6 }, "a newer controller has taken over"},
		"a host of somebody else":        {func(o *energy.Order) { o.Host = "h2" }, "does not switch host h2"},
		"a state that the driver lacks":  {func(o *energy.Order) { o.State = energy.Standby }, "standby"},
		"no state":                       {func(o *energy.Order) { o.State = "" }, "cannot bring"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{state: energy.On}
				a, _ := agentFor(t, "", m)
				first := numbered(5, "h1", energy.Off)
				first.Epoch = 7
				give(t, a, first)
				synctest.Wait()
				o := numbered(6, "h1", energy.On)
				o.Epoch = 7
				tc.change(&o)
				o.ID = "another"
				becomes(t, give(t, a, o), energy.OrderRefused, tc.reason)
				becomes(t, give(t, a, o), energy.OrderRefused, tc.reason)
				synctest.Wait()
				if got := m.switched(); got != "[off]" {
					t.Errorf("the machine was switched %v", got)
				}
			})
		})
	}
}

func TestAnEpochIsSeenOnWhateverHostAndRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := stateFile(t)
		a, stop := agentFor(t, file, &machine{state: energy.On})
		elsewhere := numbered(1, "h2", energy.On)
		elsewhere.Epoch = 2
		becomes(t, give(t, a, elsewhere), energy.OrderRefused, "does not switch")
		becomes(t, give(t, a, numbered(1, "h1", energy.Off)), energy.OrderRefused, "newer controller")
		stop()
		a, _ = agentFor(t, file, &machine{state: energy.On})
		becomes(t, give(t, a, numbered(1, "h1", energy.Off)), energy.OrderRefused, "newer controller")
	})
}

func TestALaterOrderWaitsAndTakesThePlaceOfThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{state: energy.On, gate: make(chan struct{})}
		a, _ := agentFor(t, "", m)
		first, second, third := numbered(1, "h1", energy.Off), numbered(2, "h1", energy.On), numbered(3, "h1", energy.Off)
		for _, o := range []energy.Order{first, second, third} {
			becomes(t, give(t, a, o), energy.OrderAccepted, "")
			synctest.Wait()
		}
		becomes(t, give(t, a, second), energy.OrderRefused, "order 3 (off) came before this one had begun")
		close(m.gate)
		synctest.Wait()
		becomes(t, give(t, a, first), energy.OrderDone, "")
		becomes(t, give(t, a, third), energy.OrderDone, "")
		if got := m.switched(); got != "[off off]" {
			t.Errorf("the machine was switched %v", got)
		}
	})
}

func TestAnOrderThatWaitsIsNotBegunAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{state: energy.On, gate: make(chan struct{})}
		a, _ := agentFor(t, "", m)
		first, second := numbered(1, "h1", energy.On), numbered(2, "h1", energy.Off)
		give(t, a, first)
		synctest.Wait()
		give(t, a, second)
		time.Sleep(2 * time.Minute)
		close(m.gate)
		synctest.Wait()
		becomes(t, give(t, a, second), energy.OrderRefused, "had to begin by")
		if got := m.switched(); got != "[on]" {
			t.Errorf("the machine was switched %v", got)
		}
	})
}

func TestOutcomesOfADriver(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		want   energy.Progress
		reason string
	}{
		"it fails":         {errors.New("the BMC does not answer"), energy.OrderFailed, "the BMC does not answer"},
		"it must not":      {fault.New(fault.Denied, "the node is in maintenance"), energy.OrderRefused, "the node is in maintenance"},
		"it takes forever": {nil, energy.OrderFailed, "was not off after 5m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &machine{state: energy.On, err: tc.err}
				if tc.err == nil {
					m.gate = make(chan struct{})
				}
				a, _ := agentFor(t, "", m)
				o := numbered(1, "h1", energy.Off)
				o.Patience = 30
				give(t, a, o)
				time.Sleep(6 * time.Minute)
				becomes(t, give(t, a, o), tc.want, tc.reason)
			})
		})
	}
}

func TestAnAgentThatIsStartedAgainKnowsWhatItHasTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(m *machine) // before the agent starts again
		later  time.Duration    // after the agent ended
		want   energy.Progress
		reason string
		did    string
	}{
		"what was not done is gone on with":  {func(*machine) {}, 0, energy.OrderDone, "", "[off off]"},
		"what was done meanwhile stays":      {func(m *machine) { m.state = energy.Off }, time.Hour, energy.OrderDone, "", "[off]"},
		"nothing is done after the deadline": {func(*machine) {}, time.Hour, energy.OrderFailed, "after its deadline", "[off]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file, m := stateFile(t), &machine{state: energy.On}
				a, stop := agentFor(t, file, m)
				over, under := numbered(1, "h1", energy.Off), numbered(2, "h1", energy.Off)
				give(t, a, over)
				synctest.Wait()
				m.state, m.gate = energy.On, make(chan struct{})
				becomes(t, give(t, a, under), energy.OrderAccepted, "")
				synctest.Wait()
				stop()
				close(m.gate)
				tc.before(m)
				time.Sleep(tc.later)

				a, _ = agentFor(t, file, m)
				synctest.Wait()
				becomes(t, give(t, a, over), energy.OrderDone, "")
				becomes(t, give(t, a, under), tc.want, tc.reason)
				if got := m.switched(); got != tc.did {
					t.Errorf("the machine was switched %v, want %v", got, tc.did)
				}
				becomes(t, give(t, a, energy.Order{ID: "old", Epoch: 1, Number: 2, Host: "h1", State: energy.On, Deadline: at(60)}), energy.OrderRefused, "not newer")
				becomes(t, give(t, a, energy.Order{ID: "older", Number: 9, Host: "h1", State: energy.On, Deadline: at(60)}), energy.OrderRefused, "newer controller")
			})
		})
	}
}

func TestAnOrderThatCannotBeWrittenDownIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, m := stateFile(t), &machine{state: energy.On, gate: make(chan struct{})}
		defer close(m.gate)
		a, _ := agentFor(t, file, m)
		synctest.Wait()
		if err := os.Mkdir(file+".new", 0o700); err != nil {
			t.Fatal(err)
		}
		o := numbered(1, "h1", energy.Off)
		if _, err := a.Order(t.Context(), o); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want Unavailable", err)
		}
		synctest.Wait()
		if m.under != 0 {
			t.Error("it was begun")
		}
		if err := os.Remove(file + ".new"); err != nil {
			t.Fatal(err)
		}
		becomes(t, give(t, a, o), energy.OrderAccepted, "")
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), o.ID) {
			t.Errorf("the state file has %s, %v", text, err)
		}
		synctest.Wait()
		if m.under != 1 {
			t.Error("it was not begun")
		}
	})
}

func TestTheFolderOfTheStateFileIsMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "var", "lib", "power-agent.json")
	agent, err := power.NewAgent(power.AgentOptions{StateFile: file, NewID: func() string { return "" }})
	if err != nil {
		t.Fatalf("on a fresh machine: %v", err)
	}
	defer func() { _ = agent.Close() }()
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		t.Error(err)
	}
}

func TestAStateFileThatIsDamagedOrAnotherAgentsIsRefused(t *testing.T) {
	file := stateFile(t)
	if err := os.WriteFile(file, []byte(`{"epoch":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := power.NewAgent(power.AgentOptions{StateFile: file, NewID: func() string { return "" }}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "safe to remove") {
		t.Errorf("damaged: got %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	agentFor(t, file, &machine{})
	if _, err := power.NewAgent(power.AgentOptions{StateFile: file}); !fault.Is(err, fault.Conflict) {
		t.Errorf("in use: got %v", err)
	}
}

func TestAMachineThatIsSilentHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &machine{hangs: true, gate: make(chan struct{})}
		defer close(silent.gate)
		wrong := &machine{readErr: errors.New("the answer is not readable")}
		a, _ := agentOf(t, power.AgentOptions{Name: "a1", Machines: map[string]power.Driven{
			"silent": {Machine: silent}, "wrong": {Machine: wrong}, "good": {Machine: &machine{state: energy.On}},
		}})
		began := time.Now()
		for range 2 { // the first read of the silent host is still under way
			got := a.Read(t.Context(), []string{"silent", "wrong", "good", "unknown"})
			if r := got["good"]; r.State != energy.On || r.Watts != 100 || r.Problem != "" || r.At == 0 {
				t.Errorf("good: %+v", r)
			}
			for host, problem := range map[string]string{
				"silent": "did not answer within 10s", "wrong": "the answer is not readable", "unknown": "does not switch host unknown",
			} {
				if r := got[host]; !strings.Contains(r.Problem, problem) || r.State != "" {
					t.Errorf("%s: %+v, want a problem with %q", host, r, problem)
				}
			}
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
