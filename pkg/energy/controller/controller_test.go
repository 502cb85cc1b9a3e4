// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
)

func TestAnIdleHostIsClosedWatchedAndThenSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 3, nil)
		s.fill("n3", 2)
		s.until(600, "an idle host leaves", func() bool { return s.phase("n1") == energy.Draining })
		if got := s.closed("n1"); !strings.HasPrefix(got, controller.ReasonPrefix) {
			s.until(10, "it is closed", func() bool { return strings.HasPrefix(s.closed("n1"), controller.ReasonPrefix) })
		}
		if s.servers["n1"].machine.State() != energy.On {
			t.Error("the host is off before it was watched")
		}
		s.until(120, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		if got := s.servers["n1"].machine.State(); got != energy.Off {
			t.Errorf("the host sleeps and its machine is %s", got)
		}
		s.until(900, "all idle hosts sleep", func() bool { return s.phases() == "n1 asleep, n2 asleep, n3 awake" })
		if s.story("n1") == "" || len(s.alarms()) > 0 {
			t.Errorf("alarms %v, audit:\n%s", s.alarms(), s.story("n1"))
		}
	})
}

func TestWhereNobodyLooksOnHostsAreSwitchedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, func(o *controller.Options) { o.Reports = nil })
		s.until(1200, "all sleep", func() bool { return s.phases() == "n1 asleep, n2 asleep" })
		s.reserve(now().Add(3600), 600, "n1")
		s.until(3600-1, "the reserved host is awake", func() bool { return s.phase("n1") == energy.Awake })
		if got := s.ledger.report; got.At != 0 {
			t.Errorf("a report of %v is stored", got.At)
		}
	})
}

func TestAReservedHostIsAwakeAndOpenBeforeItsReservationStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, nil)
		s.until(1200, "all sleep", func() bool { return s.phases() == "n1 asleep, n2 asleep" })
		start := now().Add(3600)
		s.reserve(start, 600, "n1")
		s.run(3600 - 960)
		if got := s.phases(); got != "n1 asleep, n2 asleep" {
			t.Fatalf("before the horizon the hosts are %s", got)
		}
		s.until(960-1, "the host is awake before the start", func() bool { return s.phase("n1") == energy.Awake })
		if s.closed("n1") != "" || !s.servers["n1"].machine.Up() {
			t.Errorf("the host is awake, closed with %q, and its operating system is up: %v", s.closed("n1"), s.servers["n1"].machine.Up())
		}
		if got := s.record("n1"); len(got.Boots) != 1 || got.Boots[0] < bootTime || got.Boots[0] > bootTime+20 || !got.LastWakeTest.Woke {
			t.Errorf("the record of a boot of %d s is %v, %+v", bootTime, got.Boots, got.LastWakeTest)
		}
		s.run(2*900 + 600) // through the reservation, until the host is idle again
		if got := s.phase("n1"); got != energy.Asleep {
			t.Errorf("after the reservation the host is %q\n%s", got, s.story("n1"))
		}
		if len(s.alarms()) > 0 {
			t.Errorf("alarms: %v", s.alarms())
		}
	})
}

func TestAHostInMaintenanceIsNeitherSwitchedOffNorOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, nil)
		s.maintain(now(), 7200, "n1")
		s.until(1200, "the other host sleeps", func() bool { return s.phases() == "n1 awake, n2 asleep" })
		s.maintain(now(), 3600, "n2")
		s.reserve(now().Add(600), 600, "n2") // booked before; it needs the host awake
		s.run(600)
		if got := s.phases(); got != "n1 awake, n2 asleep" {
			t.Errorf("in maintenance the hosts are %s", got)
		}
		order(s, "n2", energy.HoldOn) // as a part of the maintenance
		s.until(600, "an order by hand wakes it", func() bool { return s.phase("n2") == energy.Awake })
		s.until(7200, "after the maintenance the idle host sleeps", func() bool { return s.phase("n1") == energy.Asleep })
	})
}

func TestAHostThatSomethingComesToWhileItIsWatchedStaysOnAndIsOpenedAgain(t *testing.T) {
	comes := map[string]func(s *scene){
		"an instance":                           func(s *scene) { s.fill("n1", 1) },
		"an allocation that only Placement has": func(s *scene) { s.set(func() { s.servers["n1"].stray = true }) },
		"a reservation":                         func(s *scene) { s.reserve(now(), 3600, "n1") },
		"doubt about the inventory":             func(s *scene) { s.set(func() { s.untrusted = "half of the hosts are gone" }) },
		"an operator who stops everything":      func(s *scene) { change(s, controller.Change{Stop: new(true)}) },
		"an operator who sets its mode":         func(s *scene) { change(s, controller.Change{Hosts: map[string]energy.Mode{"n1": energy.ModeObserve}}) },
		"an operator who orders it on":          func(s *scene) { order(s, "n1", energy.HoldOn) },
		"a maintenance of its machine": func(s *scene) {
			s.servers["n1"].machine.Trouble(simulated.Trouble{Untouchable: "it is in maintenance"})
		},
		"a BMC that does not answer any more":    func(s *scene) { s.servers["n1"].machine.Trouble(simulated.Trouble{Broken: "no route to host"}) },
		"an agent that is lost":                  func(s *scene) { s.set(func() { s.agentLost = true }) },
		"a Nova that does not answer any more":   func(s *scene) { s.set(func() { s.novaAway = true }) },
		"an operator who closes it for his work": func(s *scene) { s.set(func() { s.servers["n1"].disabled = "memory is replaced" }) },
	}
	for what, come := range comes {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 1, nil)
				s.until(600, "it is closed", func() bool { return s.closed("n1") != "" })
				come(s)
				s.until(60, "it is awake again", func() bool { return s.phase("n1") == energy.Awake })
				s.set(func() { s.novaAway = false })
				s.run(60)
				if got := s.closed("n1"); got != "" && got != "memory is replaced" {
					t.Errorf("the host is awake and stays closed: %q\n%s", got, s.story("n1"))
				}
				if what == "an operator who closes it for his work" && s.closed("n1") == "" {
					t.Error("what an operator has closed was opened")
				}
				if s.servers["n1"].machine.State() != energy.On {
					t.Error("it was switched off")
				}
			})
		})
	}
}

func change(s *scene, c controller.Change) {
	s.t.Helper()
	if err := s.console.Change(s.t.Context(), "op", c); err != nil {
		s.t.Fatal(err)
	}
}

func order(s *scene, host string, a energy.ManualAction) {
	s.t.Helper()
	if _, err := s.console.Order(s.t.Context(), "op", host, energy.Hold{Action: a, Reason: "by hand"}); err != nil {
		s.t.Fatal(err)
	}
}

func TestInEachModeOnlyWhatItAllowsIsDone(t *testing.T) {
	for mode, off := range map[energy.Mode]bool{energy.ModeOff: false, energy.ModeObserve: false, energy.ModeRecommend: false, energy.ModeAuto: true} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 2, func(o *controller.Options) { o.Mode = mode })
				s.run(1800)
				if got := s.phase("n1") == energy.Asleep; got != off {
					t.Errorf("in mode %s an idle host sleeps: %v", mode, got)
				}
				// A sleeping host wakes for its reservation in every mode.
				if off {
					change(s, controller.Change{Mode: new(energy.ModeOff)})
					s.reserve(now().Add(600), 600, "n1")
					s.until(590, "it is awake", func() bool { return s.phase("n1") == energy.Awake })
				}
			})
		})
	}
}

func TestWhereTheModeIsOffNothingIsMeasuredOrAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, func(o *controller.Options) { o.Mode = energy.ModeOff })
		s.run(600)
		status, err := s.console.Status(t.Context())
		if err != nil || len(s.ledger.demand) > 0 || status.Stale != "" {
			t.Errorf("%d measurements were stored; stale is %q, %v", len(s.ledger.demand), status.Stale, err)
		}
		change(s, controller.Change{Hosts: map[string]energy.Mode{"n1": energy.ModeAuto}})
		s.until(900, "the host with a mode of its own sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		change(s, controller.Change{Hosts: map[string]energy.Mode{"n1": ""}})
		s.reserve(now().Add(1200), 600, "n1")
		s.until(1200, "it is awake for its reservation", func() bool { return s.phase("n1") == energy.Awake })
	})
}

func TestARecommendedPlanIsCarriedOutOnceItIsApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, func(o *controller.Options) { o.Mode = energy.ModeRecommend })
		s.run(900)
		status, err := s.console.Status(t.Context())
		if err != nil || status.Settings.Plan == nil || len(status.Settings.Plan.Switches) != 2 {
			t.Fatalf("the plan is %+v, %v", status.Settings.Plan, err)
		}
		if err := s.console.Approve(t.Context(), "op", "another"); !fault.Is(err, fault.Conflict) {
			t.Errorf("a plan that is not there is approved: %v", err)
		}
		if err := s.console.Approve(t.Context(), "op", status.Settings.PlanID); err != nil {
			t.Fatal(err)
		}
		s.until(120, "the hosts sleep", func() bool { return s.phases() == "n1 asleep, n2 asleep" })
	})
}

func TestManualOrdersWinUntilTheyAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, nil)
		s.run(10)
		order(s, "n2", energy.HoldOn)
		s.until(900, "n1 sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.run(900)
		if got := s.phase("n2"); got != energy.Awake {
			t.Errorf("a host that is held on is %q", got)
		}
		order(s, "n1", energy.HoldOn)
		s.until(240, "n1 is awake", func() bool { return s.phase("n1") == energy.Awake })
		order(s, "n1", energy.HoldOff)
		s.until(120, "n1 sleeps at once", func() bool { return s.phase("n1") == energy.Asleep })
		s.fill("n2", 1)
		if _, err := s.console.Order(t.Context(), "op", "n2", energy.Hold{Action: energy.HoldOff}); err == nil {
			s.run(65) // once the controller knows that the host has instances, it refuses
			_, err = s.console.Order(t.Context(), "op", "n2", energy.Hold{Action: energy.HoldOff})
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("a host with instances may be ordered off: %v", err)
			}
		}
		if s.phase("n2") != energy.Awake {
			t.Error("a host with instances leaves")
		}
		start := now().Add(1200)
		s.reserve(start, 600, "n1")
		s.until(700, "there is an alarm", func() bool { return slices.Contains(s.alarms(), "held_off n1") })
		order(s, "n1", energy.Release)
		s.until(240, "n1 is awake for its reservation", func() bool { return s.phase("n1") == energy.Awake })
	})
}

func TestAWakeTestSwitchesAHostOffAndOnAndAdmitsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.ledger.keep(energy.Record{Host: "n1"})
		s.run(1200)
		if got := s.phase("n1"); got != energy.Awake {
			t.Fatalf("a host that was never tested is %q", got)
		}
		order(s, "n1", energy.Test)
		s.until(400, "it was tested", func() bool {
			r := s.record("n1")
			return r.LastWakeTest != nil && r.Phase == energy.Awake && r.Hold == nil
		})
		r := s.record("n1")
		if !r.LastWakeTest.Woke || r.LastWakeTest.Seconds < bootTime || s.closed("n1") != "" {
			t.Errorf("the test resulted in %+v, and the host is closed with %q", r.LastWakeTest, s.closed("n1"))
		}
		s.until(1200, "it sleeps now that it was tested", func() bool { return s.phase("n1") == energy.Asleep })
	})
}

func TestAHostThatDoesNotBootIsTriedAgainThenGivenUpAndTriedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.servers["n1"].machine.Trouble(simulated.Trouble{NeverBoots: true})
		s.reserve(now().Add(900), 7200, "n1")
		s.until(2500, "it is given up", func() bool { return s.phase("n1") == energy.Failed })
		if got := strings.Count(s.story("n1"), "ordered on"); got != 3 {
			t.Errorf("it was ordered on %d times, want 3\n%s", got, s.story("n1"))
		}
		s.until(60, "there are alarms", func() bool {
			return slices.Contains(s.alarms(), "reserved_asleep n1") && slices.Contains(s.alarms(), "quarantined n1")
		})
		r := s.record("n1")
		if got := r.Shown(now(), 0, 0); got.Power != "failed" {
			t.Errorf("the inventory shows the host as %+v, so no other host replaces it", got)
		}
		s.servers["n1"].machine.Trouble(simulated.Trouble{})
		s.servers["n1"].machine.PressButton(energy.Off)
		s.until(4000, "it has come up at the next trial", func() bool { return s.phase("n1") == energy.Awake })
		s.run(7200 + 1800)
		if got := s.phase("n1"); got != energy.Awake {
			t.Errorf("a host in quarantine is switched off: %q", got)
		}
		order(s, "n1", energy.Release)
		s.until(900, "it may sleep again", func() bool { return s.phase("n1") == energy.Asleep })
	})
}

func TestAfterTooManyFailedBootsNothingIsSwitchedOffUntilAnOperatorSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 4, func(o *controller.Options) { o.MostFailed = 2 })
		s.fill("n4", 1)
		s.until(1200, "three sleep", func() bool { return strings.Count(s.phases(), "asleep") == 3 })
		for _, host := range []string{"n1", "n2"} {
			s.servers[host].machine.Trouble(simulated.Trouble{NeverBoots: true})
			s.reserve(now(), 600, host)
		}
		s.until(2400, "both are given up", func() bool { return strings.Count(s.phases(), "failed") == 2 })
		s.fill("n4", 0)
		s.run(1800)
		if got := s.phase("n4"); got != energy.Awake {
			t.Errorf("after two failed boots another host is switched off: %q", got)
		}
		if !slices.Contains(s.alarms(), "breaker") {
			t.Errorf("alarms: %v", s.alarms())
		}
		change(s, controller.Change{ResetBreaker: true})
		s.until(900, "it goes on", func() bool { return s.phase("n4") == energy.Asleep })
	})
}

func TestAMachineThatLiesIsNeverTakenAtItsWord(t *testing.T) {
	t.Run("it says that it is off while it runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, 1, nil)
			s.until(600, "it leaves", func() bool { return s.phase("n1") == energy.Draining })
			s.servers["n1"].machine.Trouble(simulated.Trouble{Deaf: true, Lies: true})
			s.run(600)
			if got := s.phase("n1"); got != energy.Awake || s.closed("n1") != "" {
				t.Errorf("a host that runs all the time is %q, closed with %q\n%s", got, s.closed("n1"), s.story("n1"))
			}
		})
	})
	t.Run("it says that it is on while it is off", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, 1, nil)
			s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
			s.servers["n1"].machine.Trouble(simulated.Trouble{Deaf: true, Lies: true})
			s.run(60)
			s.reserve(now().Add(600), 600, "n1")
			s.until(600, "there is an alarm", func() bool { return len(s.alarms()) > 0 })
			if s.phase("n1") == energy.Awake {
				t.Errorf("a host that is off is taken as awake\n%s", s.story("n1"))
			}
		})
	})
}

func TestAHostThatSomebodySwitchesOnIsOpenedAndLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, func(o *controller.Options) { o.Rules.MinOn = 3600 })
		s.ledger.keep(energy.Record{Host: "n1", LastWakeTest: &energy.WakeTest{Woke: true}})
		s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.servers["n1"].machine.PressButton(energy.On)
		s.until(300, "it is awake", func() bool { return s.phase("n1") == energy.Awake })
		if s.closed("n1") != "" {
			t.Errorf("the host is closed with %q", s.closed("n1"))
		}
		if !strings.Contains(s.story("n1"), "Almanac did not switch it on") {
			t.Errorf("the audit has no entry:\n%s", s.story("n1"))
		}
		s.run(3000)
		if got := s.phase("n1"); got != energy.Awake {
			t.Errorf("within the next hour the host is %q", got)
		}
	})
}

func TestAHostThatSomebodySwitchesOffIsNotWokenButTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 2, func(o *controller.Options) { o.Mode = energy.ModeObserve })
		s.run(120)
		s.servers["n1"].machine.PressButton(energy.Off)
		s.until(300, "there is an alarm", func() bool { return slices.Contains(s.alarms(), "found_off n1") })
		s.run(600)
		if s.servers["n1"].machine.State() != energy.Off {
			t.Error("it was switched on")
		}
	})
}

func TestAnAgentThatIsLostBetweenOrderAndAnswerLosesNoHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 1, nil)
		s.until(900, "it is ordered off", func() bool { return s.phase("n1") == energy.Stopping })
		s.set(func() { s.agentLost = true })
		s.run(200)
		if got := s.phase("n1"); got != energy.Stopping {
			t.Errorf("while its state is unknown, the host is %q", got)
		}
		if !slices.Contains(s.alarms(), "agent_lost n1") || !slices.Contains(s.alarms(), "agent_lost") {
			t.Errorf("alarms: %v", s.alarms())
		}
		s.set(func() { s.agentLost = false })
		s.until(30, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
		s.set(func() { s.agentLost = true })
		s.reserve(now().Add(300), 600, "n1")
		s.until(300, "there is an alarm about its reservation", func() bool { return slices.Contains(s.alarms(), "reserved_asleep n1") })
		s.set(func() { s.agentLost = false })
		s.until(240, "it is awake", func() bool { return s.phase("n1") == energy.Awake })
	})
}

func TestAControllerThatTakesOverGoesOnWhereTheOtherStopped(t *testing.T) {
	for _, phase := range []energy.Phase{energy.Draining, energy.Stopping, energy.Asleep, energy.Waking} {
		t.Run(string(phase), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, 1, nil)
				if phase == energy.Waking {
					s.until(900, "it sleeps", func() bool { return s.phase("n1") == energy.Asleep })
					s.reserve(now().Add(300), 600, "n1")
				}
				s.until(900, "it is "+string(phase), func() bool { return s.phase("n1") == phase })
				o := s.options
				o.Leases, o.Replica = lessee{s.ledger, "two"}, "two"
				s.set(func() { s.ledger.holder = "" })
				s.start(controller.New(o))
				s.run(600)
				want := energy.Asleep
				if phase == energy.Waking {
					want = energy.Awake
				}
				if got := s.phase("n1"); got != want {
					t.Errorf("the host is %q, want %q\n%s", got, want, s.story("n1"))
				}
			})
		})
	}
}

func TestAnOrdinaryDayOfASmallCloudStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 4, func(o *controller.Options) { o.Rules.IdleNeeded = 1 })
		s.fill("n1", 6)
		s.fill("n2", 7)
		s.run(120)
		s.fill("n2", 0)
		s.run(120)
		if slices.Contains(s.alarms(), "halted") {
			t.Errorf("seven of thirteen instances have gone: %v", s.alarms())
		}
	})
}

func TestManyInstancesThatAreSuddenlyGoneStopEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 4, func(o *controller.Options) { o.Rules.IdleNeeded = 1 })
		for _, host := range []string{"n1", "n2", "n3", "n4"} {
			s.fill(host, 3)
		}
		s.run(900)
		for _, host := range []string{"n1", "n2", "n3", "n4"} {
			s.set(func() { s.servers[host].guests = 0 })
		}
		s.run(500)
		if strings.Contains(s.phases(), "asleep") {
			t.Errorf("after all instances have vanished hosts are switched off: %s", s.phases())
		}
		if !slices.Contains(s.alarms(), "halted") {
			t.Errorf("alarms: %v", s.alarms())
		}
		s.run(1500)
		if !strings.Contains(s.phases(), "asleep") {
			t.Errorf("long after that the hosts are %s", s.phases())
		}
	})
}
