// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/growth"
)

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func drawMachine(t *rapid.T, name string) energy.Machine {
	m := energy.Machine{
		Name: name, Idle: rapid.IntRange(0, 8).Draw(t, "idle"), FlopsPerWatt: pick(t, "efficiency", 0.0, 1, 2, 2.5), BootSeconds: pick[int64](t, "boot", 0, 120, 1200),
		Phase:      pick(t, "phase", energy.Awake, energy.Awake, energy.Awake, energy.Asleep, energy.Asleep, energy.Draining, energy.Stopping, energy.Waking, energy.Failed),
		States:     pick(t, "states", nil, bothWays, bothWays, energy.States),
		Zone:       pick(t, "zone", "", "z1", "z2"),
		Aggregates: pick(t, "aggregates", nil, []string{"a1"}, []string{"a1", "a2"}),
		Traits:     pick(t, "traits", nil, []string{"T1"}),
		Capacity:   resource.Vector{VCPUs: rapid.Int64Range(0, 3).Draw(t, "vcpus"), Custom: map[string]int64{"CUSTOM_GPU": rapid.Int64Range(0, 2).Draw(t, "gpus")}},
		Draw:       pick(t, "draw", energy.Draw{}, energy.Draw{Idle: 100, Standby: 20, Off: 5, BootJoules: 95_000}),
		Claimed:    pick(t, "claimed", span.Forever, span.Forever, noon-1, noon, noon+60, noon+900, noon+901, noon+1000, noon+5000),
		Stays:      pick(t, "stays", "", "", "", "it is not admitted"), Stuck: pick(t, "stuck", "", "", "", "its BMC does not answer"),
		LastOn: pick(t, "last on", 0, noon-100, noon-5000), LastOff: pick(t, "last off", 0, noon-100, noon-5000), Switches: rapid.IntRange(0, 4).Draw(t, "switches"),
	}
	m.Busy = m.Phase == energy.Awake && rapid.Bool().Draw(t, "busy")
	m.Closed = m.Phase == energy.Awake && rapid.IntRange(0, 3).Draw(t, "closed") == 0
	if action := pick(t, "hold", "", "", "", energy.HoldOn, energy.HoldOff, energy.HoldStandby, energy.Test); action != "" {
		m.Hold = &energy.Hold{Action: action, Until: pick(t, "until", 0, noon, noon+1)}
	}
	return m
}

func drawSituation(t *rapid.T) energy.Situation {
	s := energy.Situation{Now: noon, Forecast: rapid.IntRange(0, 10).Draw(t, "forecast"), Halt: pick(t, "halt", "", "", "", "the inventory is stale")}
	for i := range rapid.IntRange(0, 10).Draw(t, "machines") {
		s.Machines = append(s.Machines, drawMachine(t, fmt.Sprint("h", i)))
	}
	return s
}

func drawRules(t *rapid.T) energy.Rules {
	limit := rapid.IntRange(0, 4)
	return energy.Rules{
		Horizon: pick[int64](t, "horizon", 0, 900), IdleNeeded: rapid.IntRange(0, 5).Draw(t, "idle needed"), BootMargin: pick[int64](t, "margin", 0, 60),
		SpareHosts: limit.Draw(t, "spare"), SparePercent: pick(t, "percent", 0, 0, 30),
		SpareCapacity: pick(t, "spare capacity", resource.Vector{}, resource.Vector{VCPUs: 2}, resource.Vector{VCPUs: 1, Custom: map[string]int64{"CUSTOM_GPU": 2}}),
		KeepLast:      pick(t, "last", nil, []energy.Group{energy.Zones}, []energy.Group{energy.Zones, energy.Aggregates, energy.Traits}),
		MinOn:         pick[int64](t, "min on", 0, 600), MinOff: pick[int64](t, "min off", 0, 600),
		MostOff: limit.Draw(t, "most off"), MostSwitches: limit.Draw(t, "most switches"), MostBooting: limit.Draw(t, "most booting"),
	}
}

// near reports whether a machine must be on for its claim, computed independently of the plan's
// code.
func near(r energy.Rules, m energy.Machine) bool {
	if m.Claimed == span.Forever {
		return false
	}
	left := int64(m.Claimed - noon)
	return left <= r.Horizon || left <= m.BootSeconds+r.BootMargin
}

// useful reports whether a machine is on or soon will be, and works or may receive work.
func useful(m energy.Machine) bool {
	return m.Phase == energy.Waking || m.Phase == energy.Awake && (m.Busy || !m.Closed)
}

// applied returns the machines after a plan, and the plan's switches by name.
func applied(s energy.Situation, p energy.Plan) (after []energy.Machine, switches map[string]energy.Switch) {
	switches = map[string]energy.Switch{}
	for _, w := range p.Switches {
		switches[w.Host] = w
	}
	for _, m := range s.Machines {
		switch w, is := switches[m.Name]; {
		case is && w.To != energy.On:
			m.Phase = energy.Draining
		case is && m.Phase == energy.Draining:
			m.Phase = energy.Awake
		case is:
			m.Phase = energy.Waking
		}
		after = append(after, m)
	}
	return after, switches
}

func TestNoPlanSwitchesOffWhatMustStayOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		p := r.Plan(s)
		_, switches := applied(s, p)
		if len(switches) != len(p.Switches) {
			t.Fatalf("a host is switched twice: %v", p.Switches)
		}
		off := 0
		for _, m := range s.Machines {
			w, is := switches[m.Name]
			if !is || w.To == energy.On {
				continue
			}
			held := m.Hold.Holds(noon)
			if m.Phase != energy.Awake || m.Busy || near(r, m) || held && m.Hold.Action == energy.HoldOn || s.Halt != "" || m.Stays != "" || !slices.Contains(m.States, w.To) {
				t.Fatalf("%+v is switched: %+v", m, w)
			}
			if held != w.Urgent {
				t.Fatalf("%+v is switched by the plan alone, or not: %+v", m, w)
			}
			if held {
				continue
			}
			off++
			if m.Idle < r.IdleNeeded || m.LastOn != 0 && noon < m.LastOn.Add(r.MinOn) || r.MostSwitches > 0 && m.Switches+2 > r.MostSwitches {
				t.Fatalf("a rule keeps %+v, but %+v", m, w)
			}
		}
		if r.MostOff > 0 && off > r.MostOff {
			t.Fatalf("%d hosts are switched off, and %d are the most", off, r.MostOff)
		}
	})
}

func TestEveryIdleHostIsSwitchedOffOrKeptWithAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		p := r.Plan(s)
		_, switches := applied(s, p)
		kept := map[string]string{}
		for _, k := range p.Kept {
			kept[k.Host] += k.Reason
		}
		for _, m := range s.Machines {
			_, off := switches[m.Name]
			if idle := m.Phase == energy.Awake && !m.Busy; (kept[m.Name] != "") != (idle && !off) {
				t.Fatalf("%+v: kept %q, switched %v", m, kept[m.Name], off)
			}
		}
	})
}

func TestWhatIsRequiredIsMetWhereMachinesExist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := energy.Paper(), drawSituation(t)
		p := r.Plan(s)
		after, switches := applied(s, p)
		on, could, reserved := 0, 0, 0
		for i, m := range s.Machines {
			heldDown := m.Hold.Holds(noon) && m.Hold.Action != energy.HoldOn
			reach := m.Phase == energy.Draining || m.Phase == energy.Asleep && m.Stuck == "" && len(m.States) > 0
			if near(r, m) {
				reserved++
				if reach && m.Phase == energy.Asleep && !heldDown && switches[m.Name].To != energy.On {
					t.Fatalf("%+v is reserved and left asleep", m)
				}
			}
			if useful(after[i]) {
				on++
			} else if reach && !heldDown {
				could++
			}
		}
		if required := max(s.Forecast, reserved); p.Required != required {
			t.Fatalf("%d required, want %d", p.Required, required)
		}
		if on < p.Required && could > 0 {
			t.Fatalf("%d on of %d, and %d more could be", on, p.Required, could)
		}
		if (on < p.Required) && p.Short == "" {
			t.Fatal("the plan falls short without a reason")
		}
	})
}

// standing are the machines that count for the spare hosts and for the last of each group.
type standing struct {
	on, free, manual int
	capacity         resource.Vector
	awake            map[string]int
}

func stand(r energy.Rules, machines []energy.Machine) standing {
	a := standing{awake: map[string]int{}}
	for _, m := range machines {
		if !useful(m) {
			continue
		}
		a.on++
		if !m.Busy && !near(r, m) {
			a.free++
			a.capacity = a.capacity.Add(m.Capacity)
		}
		if m.Phase == energy.Awake {
			for _, kind := range r.KeepLast {
				for _, name := range map[energy.Group][]string{energy.Zones: {m.Zone}, energy.Aggregates: m.Aggregates, energy.Traits: m.Traits}[kind] {
					if name != "" {
						a.awake[string(kind)+" "+name]++
					}
				}
			}
		}
	}
	return a
}

func TestNoPlanUsesUpTheSpareOrTheLastOfAGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		for i := range s.Machines {
			if h := s.Machines[i].Hold; h != nil && h.Action != energy.HoldOn {
				s.Machines[i].Hold = nil // these rules do not apply to manual orders to be off
			}
		}
		p := r.Plan(s)
		off := slices.ContainsFunc(p.Switches, func(w energy.Switch) bool { return w.To != energy.On })
		after, _ := applied(s, p)
		was, is := stand(r, s.Machines), stand(r, after)
		spare := max(r.SpareHosts, (len(s.Machines)*r.SparePercent+99)/100)
		if p.Spare != spare || off && (is.on < p.Required+spare || is.free < spare) {
			t.Fatalf("%d on, %d of them free, where %d are required and %d spare", is.on, is.free, p.Required, spare)
		}
		for _, class := range []func(resource.Vector) int64{
			func(v resource.Vector) int64 { return v.VCPUs }, func(v resource.Vector) int64 { return v.Custom["CUSTOM_GPU"] },
		} {
			if left := class(is.capacity); left < class(r.SpareCapacity) && left < class(was.capacity) {
				t.Fatalf("%v of %v were free, and %v are left", was.capacity, r.SpareCapacity, is.capacity)
			}
		}
		for group, n := range was.awake {
			if n > 0 && is.awake[group] == 0 {
				t.Fatalf("nothing is awake in %s", group)
			}
		}
	})
}

func TestWakesKeepTheirLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		p := r.Plan(s)
		_, switches := applied(s, p)
		booting, patient := 0, false
		for _, m := range s.Machines {
			if m.Phase == energy.Waking {
				booting++
			}
			w, is := switches[m.Name]
			if !is || w.To != energy.On {
				continue
			}
			if m.Phase == energy.Draining {
				continue
			}
			booting++
			if m.Phase != energy.Asleep || m.Stuck != "" || len(m.States) == 0 {
				t.Fatalf("%+v cannot be woken, but %+v", m, w)
			}
			pressing := near(energy.Rules{BootMargin: r.BootMargin}, m) || m.Hold.Holds(noon)
			patient = patient || !pressing
			if !w.Urgent && m.LastOff != 0 && noon < m.LastOff.Add(r.MinOff) {
				t.Fatalf("%+v has not been off for long enough", m)
			}
			if w.Urgent != (near(r, m) || m.Hold.Holds(noon)) {
				t.Fatalf("%+v: %+v", m, w)
			}
		}
		if patient && r.MostBooting > 0 && booting > r.MostBooting {
			t.Fatalf("%d boot, and %d are the most", booting, r.MostBooting)
		}
	})
}

func TestAPlanBeginsWithWhatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		due, p := r.Due(s), r.Plan(s)
		if len(p.Switches) < len(due) {
			t.Fatalf("%v are due, and %v planned", due, p.Switches)
		}
		if diff := cmp.Diff(due, slices.Clone(p.Switches[:len(due)]), cmp.Comparer(func(a, b energy.Switch) bool { return a == b })); len(due) > 0 && diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAPlanDoesNotDependOnTheOrderOfTheMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRules(t), drawSituation(t)
		want := r.Plan(s)
		s.Machines = rapid.Permutation(s.Machines).Draw(t, "order")
		if diff := cmp.Diff(want, r.Plan(s)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// fleet returns hosts, and rules that keep some of each group awake. A quarter of the hosts is busy, and a
// quarter sleeps and has claims within three hours. The forecast is 40 % of the hosts.
func fleet(hosts int) (energy.Rules, energy.Situation) {
	s := energy.Situation{Now: noon, Forecast: hosts * 4 / 10}
	for i := range hosts {
		m := idle(fmt.Sprintf("h%05d", i), 9)
		m.FlopsPerWatt, m.Zone, m.Aggregates, m.Traits = float64(i%37), fmt.Sprint("z", i%5), []string{fmt.Sprint("a", i%(hosts/50))}, []string{"T1", "T2", "T3"}
		m.Capacity = resource.Vector{VCPUs: 64, MemoryMB: 512_000, Custom: map[string]int64{"CUSTOM_GPU": int64(i % 2)}}
		switch i % 4 {
		case 0:
			m.Busy = true
		case 1:
			m.Phase, m.Claimed = energy.Asleep, noon.Add(int64(i*10_000/hosts))
		}
		s.Machines = append(s.Machines, m)
	}
	return energy.Rules{
		Horizon: 900, IdleNeeded: 5, SparePercent: 5, SpareCapacity: resource.Vector{Custom: map[string]int64{"CUSTOM_GPU": int64(hosts) / 100}},
		KeepLast: []energy.Group{energy.Zones, energy.Aggregates, energy.Traits}, MostBooting: 50, MinOn: 600, MinOff: 600,
	}, s
}

func BenchmarkPlan10000Hosts(b *testing.B) {
	rules, s := fleet(10_000)
	b.ReportAllocs()
	for b.Loop() {
		rules.Plan(s)
	}
	b.ReportMetric(50e6, "ns/op-goal")
}

func BenchmarkGrowth(b *testing.B) {
	growth.Measure(b, "energy plan", func(_ *testing.B, hosts int) growth.Run {
		rules, s := fleet(hosts)
		return growth.Same(func() { rules.Plan(s) })
	})
}
