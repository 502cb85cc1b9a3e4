// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// refused checks that the console refuses an order, in a dry run and for real, with these words.
func refused(s *scene, host string, o energy.Hold, words ...string) {
	s.t.Helper()
	_, err := s.console.Order(s.t.Context(), "op", host, o)
	_, _, foreseen := s.console.Foresee(s.t.Context(), host, o)
	for _, err := range []error{err, foreseen} {
		if !fault.Is(err, fault.Conflict) {
			s.t.Errorf("%s %s until %v: %v", host, o.Action, o.Until, err)
			continue
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				s.t.Errorf("%s %s is refused without %q: %v", host, o.Action, word, err)
			}
		}
	}
	if s.record(host).Hold != nil {
		s.t.Errorf("%s has an order that was refused", host)
	}
}

func TestAHostWhosePropertyForbidsItIsNotSwitchedOffByHandEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.set(func() {
			s.servers["n1"].host.Properties = map[string]inventory.Value{"managed": inventory.BoolValue(false)}
		})
		s.run(65)
		for _, a := range []energy.ManualAction{energy.HoldOff, energy.Test} {
			refused(s, "n1", energy.Hold{Action: a}, "managed forbids it")
		}
		order(s, "n1", energy.HoldOn)
	})
}

// changing is an inventory that contains n1 only in every second snapshot.
type changing struct {
	*rack
	snapshots int
}

func (c *changing) Snapshot() *inventory.Snapshot {
	all := c.rack.Snapshot()
	if c.snapshots++; c.snapshots%2 == 0 {
		return all
	}
	var others []inventory.Host
	for _, h := range all.Hosts() {
		if h.Name != "n1" {
			others = append(others, *h)
		}
	}
	without, err := inventory.NewSnapshot(others, nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return without
}

func TestAnOrderIsJudgedByItsOwnHostWhileOthersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, nil)
		s.set(func() {
			s.servers["n1"].host.Properties = map[string]inventory.Value{"managed": inventory.BoolValue(false)}
		})
		s.run(65)
		for first := range 2 {
			s.console.Inventory = &changing{rack: (*rack)(s), snapshots: first}
			if _, _, err := s.console.Foresee(t.Context(), "n2", energy.Hold{Action: energy.HoldOff}); err != nil {
				t.Errorf("n2, which may be switched off, from snapshot %d on: %v", first, err)
			}
		}
	})
}

func TestAnOrderThatWouldBreakAReservationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.run(65)
		start := now().Add(1200)
		s.reserve(start, 600, "n1") // after the last measurement
		const up = bootTime + 60    // with its margin
		refused(s, "n1", energy.Hold{Action: energy.HoldOff, Until: start}, start.String())
		refused(s, "n1", energy.Hold{Action: energy.HoldOff, Until: start.Add(1 - up)}, start.String())
		for _, o := range []energy.Hold{{Action: energy.HoldOff, Until: start.Add(-up)}, {Action: energy.HoldOff}, {Action: energy.Test}} {
			if _, outcome, err := s.console.Foresee(t.Context(), "n1", o); err != nil || outcome == "" {
				t.Errorf("%s until %v: %q, %v", o.Action, o.Until, outcome, err)
			}
		}
		time.Sleep(300 * time.Second) // within the horizon
		refused(s, "n1", energy.Hold{Action: energy.Test}, start.String())
	})
}

func TestATestOfAHostThatIsBeingSwitchedOffWakesItOnce(t *testing.T) {
	for _, phase := range []energy.Phase{energy.Draining, energy.Stopping} {
		t.Run(string(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 1, nil)
				s.until(900, "n1 is "+string(phase), func() bool { return s.phase("n1") == phase })
				order(s, "n1", energy.Test)
				asked := now()
				s.until(600, "it was tested", func() bool { r := s.record("n1"); return r.Phase == energy.Awake && r.Hold == nil })
				if p := s.record("n1").LastWakeTest; p == nil || p.At < asked || !p.Woke {
					t.Errorf("the test resulted in %+v\n%s", p, s.story("n1"))
				}
				if got := strings.Count(s.story("n1"), "phase: waking"); got != 1 {
					t.Errorf("it woke %d times\n%s", got, s.story("n1"))
				}
			})
		})
	}
}

func TestToReleaseAHostThatLeftTheInventoryIsToForgetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, nil)
		s.run(65)
		s.ledger.mu.Lock()
		s.ledger.records["gone"] = energy.Record{Host: "gone", Hold: &energy.Hold{Action: energy.HoldOff, At: now()}}
		s.ledger.mu.Unlock()
		release := energy.Hold{Action: energy.Release}
		if _, outcome, err := s.console.Foresee(t.Context(), "gone", release); err != nil || !strings.Contains(outcome, "record is deleted") {
			t.Errorf("foreseen is %q: %v", outcome, err)
		}
		order(s, "gone", energy.Release)
		records, err := s.ledger.PowerRecords(t.Context())
		if _, kept := records["gone"]; kept || err != nil || len(records) != 2 {
			t.Errorf("the records are %v: %v", records, err)
		}
		if story := s.story("gone"); !strings.Contains(story, "record is deleted") {
			t.Errorf("the audit is %s", story)
		}
		_, err = s.console.Order(t.Context(), "op", "gone", release)
		_, _, foreseen := s.console.Foresee(t.Context(), "gone", release)
		if !fault.Is(err, fault.NotFound) || !fault.Is(foreseen, fault.NotFound) {
			t.Errorf("once more: %v, %v", err, foreseen)
		}
		if records, _ := s.ledger.PowerRecords(t.Context()); len(records) != 2 {
			t.Errorf("the records are %v", records)
		}
	})
}

func TestAnOrderSaysAtOnceWhyItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, nil)
		s.run(120)
		if err := s.console.Change(t.Context(), "op", controller.Change{Stop: new(true), Reason: "a fire drill"}); err != nil {
			t.Fatal(err)
		}
		s.run(120)
		for _, action := range []energy.ManualAction{energy.HoldOff, energy.Test} {
			order := energy.Hold{Action: action}
			_, foreseen, err := s.console.Foresee(t.Context(), "n1", order)
			status, failed := s.console.Order(t.Context(), "op", "n1", order)
			if err != nil || failed != nil || !strings.Contains(foreseen, "waits: nothing is switched off now") ||
				!strings.Contains(foreseen, "a fire drill") || status.Outcome != foreseen {
				t.Errorf("%s: foreseen %q, answered %q, %v, %v", action, foreseen, status.Outcome, err, failed)
			}
		}
	})
}

func TestAnOrderIsForeseenAndNotGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, nil)
		s.fill("n2", 1)
		s.until(900, "n1 sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.reserve(now().Add(86400), 600, "n1")
		for _, test := range []struct {
			host    string
			action  energy.ManualAction
			until   span.Instant
			outcome string
		}{
			{"n2", energy.HoldOn, 0, "already on"},
			{"n1", energy.HoldOn, 0, "switched on"},
			{"n1", energy.Test, 0, "switched on, to test that it wakes"},
			{"n1", energy.HoldOff, now().Add(60), "already asleep, and stays asleep"},
			{"n1", energy.HoldOff, 0, "counts as failed"},
			{"n1", energy.Release, 0, "the plan decides"},
		} {
			before := s.story("")
			_, outcome, err := s.console.Foresee(t.Context(), test.host, energy.Hold{Action: test.action, Until: test.until})
			if err != nil || !strings.Contains(outcome, test.outcome) || s.story("") != before {
				t.Errorf("%s %s: %q, %v", test.host, test.action, outcome, err)
			}
		}
		refused(s, "n2", energy.Hold{Action: energy.HoldOff}, "has instances")
	})
}
