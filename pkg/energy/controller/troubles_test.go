// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

// another lets a second controller take over.
func (s *scene) another() {
	o := s.options
	o.Leases, o.Replica = lessee{s.ledger, "two"}, "two"
	s.set(func() { s.ledger.holder = "" })
	s.start(controller.New(o))
}

func TestAnOrderToSwitchOffThatDidNotArriveIsNotGivenAgainWithoutAnotherLook(t *testing.T) {
	for what, meanwhile := range map[string]func(s *scene){
		"another controller takes over":        func(s *scene) { s.another() },
		"an operator stops everything":         func(s *scene) { change(s, controller.Change{Stop: new(true)}) },
		"an operator orders it on":             func(s *scene) { order(s, "n1", energy.HoldOn) },
		"a reservation starts, and it is open": func(s *scene) { s.reserve(now(), 3600, "n1"); s.set(func() { s.servers["n1"].disabled = "" }) },
		"an instance was forced there":         func(s *scene) { s.fill("n1", 1) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 1, nil)
				s.set(func() { s.unheard = true })
				s.until(900, "it is ordered off", func() bool { return s.phase("n1") == energy.Stopping })
				meanwhile(s)
				s.run(7)
				s.set(func() { s.unheard = false })
				s.run(120) // an instance, a reservation or an open host would be a breach
				asleep := s.phase("n1") == energy.Asleep
				if want := what == "another controller takes over"; asleep != want {
					t.Errorf("it sleeps: %v\n%s", asleep, s.story("n1"))
				}
			})
		})
	}
}

func TestAnOrderWhoseAnswerWasLostIsKnownOnceItsAgentAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.set(func() { s.unsaid = true })
		s.until(900, "it is ordered off", func() bool { return s.phase("n1") == energy.Stopping })
		s.another()
		s.run(20)
		s.set(func() { s.unsaid = false })
		s.until(120, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		if s.closed("n1") == "" {
			t.Error("a host that is off was opened")
		}
	})
}

func TestAHostThatStopsAfterItsAgentHasGivenUpIsAsleepAndNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, func(o *controller.Options) { o.Switching.OffPatience = 20 }) // stopping takes 30 s
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverStops: true})
		s.until(900, "it is ordered off", func() bool { return s.phase("n1") == energy.Stopping })
		s.run(45)
		s.servers["n1"].machine.PressButton(energy.Off)
		s.until(60, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
	})
}

func TestAHostThatDoesNotStopIsOpenedAgainAndInQuarantineAfterThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverStops: true})
		s.until(3600, "it is in quarantine", func() bool { return s.record("n1").Quarantine != "" })
		if got := s.record("n1").OffFailed; got != 3 {
			t.Errorf("it failed to stop %d times", got)
		}
		s.until(30, "it is open", func() bool { return s.phase("n1") == energy.Awake && s.closed("n1") == "" })
		if s.servers["n1"].machine.State() != energy.On {
			t.Error("its power was cut")
		}
	})
}

func TestWhileAnOperatorHoldsABrokenHostOffItIsNotTried(t *testing.T) {
	for _, during := range []energy.Phase{energy.Waking, energy.Failed} {
		t.Run(string(during), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 1, func(o *controller.Options) { o.Switching.Backoff = 600 })
				s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
				s.servers["n1"].machine.Trouble(simulated.Trouble{NeverBoots: true})
				s.reserve(now().Add(900), 600, "n1")
				s.until(9000, "it has failed to wake", func() bool { r := s.record("n1"); return r.Phase == during && r.Attempt > 0 && r.Order == nil })
				order(s, "n1", energy.HoldOff)
				s.servers["n1"].machine.PressButton(energy.Off)
				orders := strings.Count(s.story("n1"), "ordered on (order")
				s.run(3 * 3600)
				if got := strings.Count(s.story("n1"), "ordered on (order"); got != orders || s.servers["n1"].machine.State() != energy.Off {
					t.Errorf("the host was ordered on %d times during its repair\n%s", got-orders, s.story("n1"))
				}
				s.servers["n1"].machine.Trouble(simulated.Trouble{})
				order(s, "n1", energy.Release)
				s.until(3700, "it is awake", func() bool { return s.phase("n1") == energy.Awake })
			})
		})
	}
}

func TestWhatIsOrderedByHandDuringAWakeTestStays(t *testing.T) {
	for _, action := range []energy.ManualAction{energy.HoldOn, energy.HoldOff} {
		for _, phase := range []energy.Phase{energy.Draining, energy.Stopping, energy.Waking} {
			t.Run(string(action)+" while "+string(phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScene(t, 1, nil)
					s.run(70)
					order(s, "n1", energy.Test)
					s.until(400, "it is "+string(phase), func() bool { return s.phase("n1") == phase })
					order(s, "n1", action)
					s.run(900)
					want := map[energy.ManualAction]energy.Phase{energy.HoldOn: energy.Awake, energy.HoldOff: energy.Asleep}[action]
					if r := s.record("n1"); r.Hold == nil || r.Hold.Action != action || r.Phase != want || r.Testing {
						t.Errorf("the host is %q with the hold %+v\n%s", r.Phase, r.Hold, s.story("n1"))
					}
				})
			})
		}
	}
}

func TestAWakeTestOfAHostThatSleepsWakesItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, func(o *controller.Options) { o.Rules.MinOn = 7200 })
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		order(s, "n1", energy.Test)
		s.until(240, "it is awake", func() bool { return s.phase("n1") == energy.Awake })
		s.run(900)
		if r := s.record("n1"); r.Hold != nil || r.Phase != energy.Awake || !r.LastWakeTest.Woke {
			t.Errorf("after the test the record is %+v\n%s", r, s.story("n1"))
		}
	})
}

func TestAHostThatNeverBootsPassesNoTestWhileNovaIsAwayAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.run(70)
		order(s, "n1", energy.Test)
		s.until(400, "it is stopping", func() bool { return s.phase("n1") == energy.Stopping })
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverBoots: true})
		s.run(15)
		s.set(func() { s.novaAway = true })
		s.until(60, "it is on its way back", func() bool { return s.phase("n1") == energy.Waking })
		s.set(func() { s.novaAway = false })
		s.run(600)
		if r := s.record("n1"); r.Phase == energy.Awake || len(r.Boots) > 0 {
			t.Errorf("a machine that never came up is %q, boots %v\n%s", r.Phase, r.Boots, s.story("n1"))
		}
	})
}

func TestAHostThatWasNotOpenedIsOpenedWhateverItsModeIsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.until(600, "it is closed", func() bool { return s.closed("n1") != "" })
		s.set(func() { s.novaStuck = true })
		change(s, controller.Change{Mode: new(energy.ModeOff)})
		s.until(30, "it stays on", func() bool { return s.phase("n1") == energy.Awake })
		s.run(600)
		s.set(func() { s.novaStuck = false })
		s.until(30, "it is open", func() bool { return s.closed("n1") == "" })
	})
}

func TestAHostThatSleptAndRunsAgainIsFoundWithoutItsAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.set(func() { s.agentLost = true })
		s.servers["n1"].machine.PressButton(energy.On)
		s.until(600, "it is open", func() bool { return s.phase("n1") == energy.Awake && s.closed("n1") == "" })
	})
}

func TestABrokenHostIsOneFailureAndIsPromisedToNobodyWhileItIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverBoots: true})
		s.reserve(now().Add(900), 600, "n1")
		s.until(3600, "it has failed once", func() bool { return s.record("n1").Attempt == 1 })
		for range 200 {
			s.run(60)
			r := s.record("n1")
			if got := r.Shown(now(), 0, 0).Power; got != "failed" {
				t.Fatalf("while the host is %q after a failure, the inventory shows it as %q", r.Phase, got)
			}
		}
		settings, err := s.ledger.EnergySettings(t.Context())
		if err != nil || settings.FailedBoots != 1 || settings.Breaker != nil {
			t.Errorf("one host that failed at each trial counts as %d, breaker %+v", settings.FailedBoots, settings.Breaker)
		}
	})
}

func TestAPlanThatIsApprovedJustBeforeTheNextIsCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, func(o *controller.Options) { o.Mode = energy.ModeRecommend })
		s.run(899)
		status, err := s.console.Status(t.Context())
		if err != nil || status.Settings.Plan == nil {
			t.Fatalf("%+v, %v", status.Settings, err)
		}
		// The test writes to the store: nothing wakes the controller before its next plan is due.
		err = s.ledger.ChangeEnergySettings(t.Context(), job.Lease{}, func(e *energy.Settings) ([]energy.Entry, error) {
			e.Approved = &energy.Approval{Plan: e.PlanID, By: "op", At: now()}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.until(120, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
	})
}

func TestABootThatTakesAWhileLongerThanTheLastIsNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.ledger.keep(energy.Record{Host: "n1", Boots: []int64{bootTime - 20}, LastWakeTest: &energy.WakeTest{Woke: true}})
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.reserve(now().Add(bootTime-20+60), 600, "n1")
		for range 60 {
			s.run(5)
			if slices.Contains(s.alarms(), "reserved_asleep n1") {
				t.Fatalf("an alarm is raised about a boot of %d s where %d s were known, with a margin of 60 s", bootTime, bootTime-20)
			}
		}
	})
}

func TestAControllerThatTakesOverRaisesNoAlarmAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverStops: true})
		s.until(3600, "there is an alarm", func() bool { return slices.Contains(s.alarms(), "quarantined n1") })
		s.another()
		s.run(120)
		if got := strings.Count(s.story("n1"), "alarm: quarantined:"); got != 1 {
			t.Errorf("it was raised %d times\n%s", got, s.story("n1"))
		}
		order(s, "n1", energy.Release)
		s.until(120, "it is over", func() bool { return strings.Contains(s.story("n1"), "quarantined is over") })
	})
}
