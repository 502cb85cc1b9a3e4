// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const day = 24 * 3600

var caller = booking.Caller{ProjectID: "p"}

// draw is the power draw of Batsim's example (platforms/cluster_energy_128.xml).
var draw = energy.Draw{Idle: 95, Full: 190.738, Off: 9.75, BootJoules: 18966 + 616}

// witness watches a site and checks its invariants with a count of its own.
type witness struct {
	t        *testing.T
	timeline *sim.Timeline
	site     *site.Site

	total, used, off []energy.Level
	begun            []site.Beginning
	refused          int
}

func newWitness(t *testing.T, o site.Options) *witness {
	w := &witness{t: t, timeline: sim.NewTimeline(sim.Second(0))}
	o.Watch = func(at span.Instant, c site.Cores) {
		w.total = append(w.total, energy.Level{From: at, Cores: c.All()})
		w.used = append(w.used, energy.Level{From: at, Cores: c.InUse()})
		w.off = append(w.off, energy.Level{From: at, Cores: c.Off()})
	}
	o.Began = func(b site.Beginning) error { w.begun = append(w.begun, b); return nil }
	var err error
	if w.site, err = site.New(t.Context(), w.timeline, o); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *witness) submit(req reservation.Request) (reservation.Reservation, bool) {
	w.t.Helper()
	r, err := w.site.Submit(w.t.Context(), caller, req)
	if refusal := (*reservation.Refusal)(nil); errors.As(err, &refusal) {
		w.refused++
		return r, false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r, true
}

func (w *witness) run(until int64) site.Totals {
	w.t.Helper()
	if err := w.timeline.Run(w.t.Context(), sim.Second(until)); err != nil {
		w.t.Fatal(err)
	}
	totals := w.site.Finish()
	if used, want := totals.ResIdle(), energy.ResIdle(w.total, w.used, w.timeline.Now()); used != want {
		w.t.Errorf("res_idle is %d core-seconds, and a recount %d", used, want)
	}
	if got, want := totals.Savings(), energy.Area(w.off, w.timeline.Now()); got != want {
		w.t.Errorf("e_savings is %d core-seconds, and a recount %d", got, want)
	}
	return totals
}

func hosts(quantity int) reservation.Terms { return reservation.Terms{Quantity: quantity} }

// Check A004-6: four nodes of one core for an hour; one is reserved for [22,32) min, and a boot
// takes 2 min. The paper plans every five minutes and so wakes the node at 10. The service wakes
// it 15 minutes ahead, at 7, which saves three core-minutes less. With a horizon of 12 minutes
// both wake it at 10 and save 190.
func TestFourNodesOfThePaper(t *testing.T) {
	for horizon, want := range map[int64]int64{15 * 60: 187, 12 * 60: 190} {
		t.Run(fmt.Sprint(horizon), func(t *testing.T) {
			power := site.Paper(120)
			power.Rules.Horizon, power.Switching.Settle, power.StepEvery = horizon, 0, 1
			w := newWitness(t, site.Options{Hosts: sim.Hosts(4), Machines: site.Machines{Boot: 120}, Power: &power})
			w.submit(reservation.Request{Terms: hosts(1), Start: sim.Second(22 * 60), Duration: 600})
			got := w.run(3600)
			// The controller closes an idle host, checks it, and switches it off in three steps.
			if saved := got.Savings(); saved > want*60 || saved < want*60-5*3 {
				t.Errorf("%d core-seconds are saved, want %d, less a few seconds", saved, want*60)
			}
			if got.Delay != 0 || len(w.begun) != 1 || w.begun[0].Late() != 0 {
				t.Errorf("it began late: %+v, delay %v", w.begun, got.Delay)
			}
			if got.Shutdowns != 5 || got.Boots != 1 {
				t.Errorf("%d shutdowns and %d boots, want 5 and 1", got.Shutdowns, got.Boots)
			}
		})
	}
}

// A request that comes while all hosts sleep is delayed by a boot, and its reservation states
// that.
func TestARequestThatFindsAllAsleepWaitsForTheBoot(t *testing.T) {
	power := site.Paper(120)
	w := newWitness(t, site.Options{Hosts: sim.Hosts(2), Machines: site.Machines{Shutdown: 10, Boot: 120, Draw: draw}, Power: &power})
	var r reservation.Reservation
	w.timeline.At(sim.Second(1800), sim.Arriving, func() error {
		r, _ = w.submit(reservation.Request{Terms: hosts(2), Duration: 600})
		return nil
	})
	got := w.run(3600)
	if !r.DelayedByBoot || r.Span.Start != sim.Second(1920) {
		t.Fatalf("the start is %v, delayed %v; want 1920 s, and delayed", r.Span.Start, r.DelayedByBoot)
	}
	// The controller sees the request in its step of the same second, and the machines are up in
	// time.
	if late := w.begun[0].Late(); late > 5 {
		t.Errorf("it began %d s late, want one step at most", late)
	}
	if want := 2 * float64(w.begun[0].Wait()) / 600; math.Abs(got.Delay-want) > 1e-9 {
		t.Errorf("delay_req is %v, want %v", got.Delay, want)
	}
}

func TestWhereNothingIsSwitchedAllStaysOn(t *testing.T) {
	w := newWitness(t, site.Options{Hosts: sim.Hosts(3), Machines: site.Machines{Boot: 120, Draw: draw}})
	w.submit(reservation.Request{Terms: hosts(2), Duration: 3600})
	w.submit(reservation.Request{Terms: hosts(3), Start: sim.Second(7200), Duration: 3600})
	got := w.run(day)
	if got.Savings() != 0 || got.Delay != 0 || got.Boots+got.Shutdowns != 0 {
		t.Errorf("something was switched: %+v", got)
	}
	if want := 5*3600*draw.Full + (3*day-5*3600)*draw.Idle; math.Abs(got.Joules-want) > 1e-3 {
		t.Errorf("%v J were taken, want %v", got.Joules, want)
	}
}

func TestOneThatEndsEarlyFreesItsHosts(t *testing.T) {
	w := newWitness(t, site.Options{Hosts: sim.Hosts(1), Machines: site.Machines{Boot: 120}})
	r, _ := w.submit(reservation.Request{Terms: hosts(1), Duration: 3600})
	w.timeline.At(sim.Second(600), sim.Ending, func() error { return w.site.End(t.Context(), r.ID) })
	w.timeline.At(sim.Second(600), sim.Arriving, func() error {
		if _, ok := w.submit(reservation.Request{Terms: hosts(1), Duration: 600}); !ok {
			t.Error("its host is not free")
		}
		return nil
	})
	if got := w.run(3600); got.Cores.InUse() != 1200 {
		t.Errorf("%d core-seconds were used, want 1200", got.Cores.InUse())
	}
}

// month lets random jobs come for 30 days. A third of them are booked ahead, and some end early
// or are canceled.
func (w *witness) month(seed uint64, nodes int, ahead int64) {
	chance := sim.Chance(seed, "jobs")
	var arrive func() error
	arrive = func() error {
		now := w.timeline.Now()
		w.timeline.After(int64(chance.ExpFloat64()*2400), sim.Arriving, arrive)
		req := reservation.Request{Terms: hosts(1 + int(math.Exp(chance.Float64()*math.Log(float64(nodes))))/2), Duration: 60 + int64(math.Exp(chance.Float64()*math.Log(20000)))}
		if chance.IntN(3) == 0 {
			req.Start = now.Add(ahead + chance.Int64N(2*day))
		}
		r, booked := w.submit(req)
		if !booked {
			return nil
		}
		if r.DelayedByBoot && r.Span.Start == now {
			w.t.Errorf("%s is delayed by no time", r.ID)
		}
		if chance.IntN(5) == 0 {
			at := now.Add(chance.Int64N(int64(r.Span.End-now) + 1))
			w.timeline.At(at, sim.Ending, func() error {
				if _, live := w.site.Reservation(r.ID); !live {
					return nil
				}
				return w.site.End(w.t.Context(), r.ID)
			})
		}
		return nil
	}
	w.timeline.After(1, sim.Arriving, arrive)
}

// The test runs the booking service, controller and machines for thirty days. The site itself fails if a host
// with an instance is switched off or a host is booked twice; the test counts each change again.
func TestForThirtyDaysWhatWasAskedForAheadIsNeverLate(t *testing.T) {
	w := inMonth(t, 30, func(*site.Options) {})
	if w.Boots < 300 || w.Begun < 500 || w.Delayed < 50 || w.Shutdowns < w.Boots {
		t.Errorf("little happened: %+v", w)
	}
}

func TestNeitherIsItUnderOtherRules(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	for name, change := range map[string]func(*site.Options){
		"boots by chance": func(o *site.Options) {
			o.Machines.Spread, o.Machines.Crowding, o.Power.Rules.BootMargin = 0.2, 0.01, 120
		},
		"safety rules": func(o *site.Options) {
			o.Power.Rules.SpareHosts, o.Power.Rules.MostOff, o.Power.Rules.MinOn, o.Power.Rules.MostBooting = 2, 1, 1800, 2
		},
		"another forecast": func(o *site.Options) { o.Power.Forecaster = "time_of_week" },
		"nothing switched": func(o *site.Options) { o.Power = nil },
	} {
		t.Run(name, func(t *testing.T) { inMonth(t, 4, change) })
	}
}

// inMonth runs this many days and checks the rules on each of them.
func inMonth(t *testing.T, days int64, change func(*site.Options)) site.Totals {
	const nodes, ahead = 8, 15*60 + 60
	power := site.Paper(152)
	o := site.Options{Hosts: sim.Hosts(nodes), Machines: site.Machines{Shutdown: 6, Boot: 152, Draw: draw}, Power: &power, Seed: 1}
	change(&o)
	w := newWitness(t, o)
	w.month(1, nodes, ahead)
	got := w.run(days * day)
	for i := range w.used {
		if used, off, all := w.used[i].Cores, w.off[i].Cores, w.total[i].Cores; used < 0 || off < 0 || used+off > all || all != nodes {
			t.Fatalf("at %v %d cores are used and %d off, of %d", w.used[i].From, used, off, all)
		}
	}
	for _, b := range w.begun {
		if b.Late() > 0 && b.Promised >= b.Asked.Add(ahead) && !b.Reservation.DelayedByBoot {
			t.Errorf("a reservation that was booked ahead began %d s late: %+v", b.Late(), b)
		}
	}
	if got.Savings() > got.ResIdle() || (got.Savings() > 0) != (o.Power != nil) {
		t.Errorf("%d core-seconds are saved, where %d could be", got.Savings(), got.ResIdle())
	}
	return got
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	run := func() site.Totals {
		power := site.Paper(152)
		o := site.Options{Hosts: sim.Hosts(8), Machines: site.Machines{Shutdown: 6, Boot: 152, Spread: 0.3, Crowding: 0.05, Draw: draw}, Power: &power, Seed: 7}
		w := newWitness(t, o)
		w.month(3, 8, 0)
		return w.run(2 * day)
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestToPassOverStepsWithNothingToSeeChangesNothing(t *testing.T) {
	run := func(always bool) site.Totals {
		power := site.Paper(152)
		power.Rules.Horizon = 60 // so that boots begin between two measurements
		w := newWitness(t, site.Options{Hosts: sim.Hosts(5), Machines: site.Machines{Shutdown: 7, Boot: 150, Spread: 0.2, Draw: draw}, Power: &power, Seed: 2})
		if always {
			w.site.StepAlways()
		}
		w.month(5, 5, 0)
		return w.run(day)
	}
	some, all := run(false), run(true)
	if all.Steps != day/5 || some.Steps >= all.Steps/4 || some.Boots < 10 {
		t.Errorf("%d and %d steps with %d boots", some.Steps, all.Steps, some.Boots)
	}
	all.Steps = some.Steps
	if diff := cmp.Diff(all, some); diff != "" {
		t.Errorf("all steps -, some +\n%s", diff)
	}
}

func TestOptionsThatCannotBeMetAreRefused(t *testing.T) {
	for field, change := range map[string]func(*site.Options){
		"hosts":            func(o *site.Options) { o.Hosts = nil },
		"shutdown":         func(o *site.Options) { o.Machines.Shutdown = -1 },
		"boot":             func(o *site.Options) { o.Machines.Boot = -1 },
		"boot_spread":      func(o *site.Options) { o.Machines.Spread = math.NaN() },
		"boot_crowding":    func(o *site.Options) { o.Machines.Crowding = -1 },
		"full_watts":       func(o *site.Options) { o.Machines.Draw.Full = math.Inf(1) },
		"horizon":          func(o *site.Options) { o.Power.Rules.Horizon = -1 },
		"idle_intervals":   func(o *site.Options) { o.Power.Rules.IdleNeeded = 0 },
		"step_interval":    func(o *site.Options) { o.Power.StepEvery = 0 },
		"measure_interval": func(o *site.Options) { o.Power.StepEvery = 7 },
		"plan_interval":    func(o *site.Options) { o.Power.PlanEvery = 0 },
		"boot_time":        func(o *site.Options) { o.Power.BootTime = -1 },
		"forecaster":       func(o *site.Options) { o.Power.Forecaster = "tea leaves" },
		"window":           func(o *site.Options) { o.Power.Window = 0 },
	} {
		power := site.Paper(120)
		o := site.Options{Hosts: sim.Hosts(1), Machines: site.Machines{Boot: 120}, Power: &power}
		change(&o)
		_, err := site.New(t.Context(), sim.NewTimeline(sim.Second(0)), o)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != field {
			t.Errorf("%s: the error is %v", field, err)
		}
	}
}
