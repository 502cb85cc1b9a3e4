// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// noon is when the plans of the tests are made.
const noon = span.Instant(1_800_000_000)

// bothWays is what every driver can do.
var bothWays = []energy.State{energy.On, energy.Off}

// idle returns a host that was idle for this number of measurements.
func idle(name string, measurements int) energy.Machine {
	return energy.Machine{Name: name, Idle: measurements, Claimed: span.Forever, States: bothWays, Capacity: resource.Vector{VCPUs: 1}}
}

func busy(name string) energy.Machine {
	m := idle(name, 0)
	m.Busy = true
	return m
}

func asleep(name string, efficiency float64) energy.Machine {
	m := idle(name, 0)
	m.Phase, m.FlopsPerWatt = energy.Asleep, efficiency
	return m
}

// with returns the machine after some changes.
func with(m energy.Machine, changes ...func(*energy.Machine)) energy.Machine {
	for _, change := range changes {
		change(&m)
	}
	return m
}

func claimed(in int64) func(*energy.Machine) {
	return func(m *energy.Machine) { m.Claimed = noon.Add(in) }
}

func boots(seconds int64) func(*energy.Machine) {
	return func(m *energy.Machine) { m.BootSeconds = seconds }
}

func phase(p energy.Phase) func(*energy.Machine) {
	return func(m *energy.Machine) { m.Phase = p }
}

func held(action energy.ManualAction) func(*energy.Machine) {
	return func(m *energy.Machine) {
		m.Hold = &energy.Hold{Action: action, Reason: "the rack is rewired", At: noon}
	}
}

func in(zone string) func(*energy.Machine) { return func(m *energy.Machine) { m.Zone = zone } }

// switched returns the hosts that a plan switches, as "name state", in the plan's order.
func switched(list []energy.Switch) []string {
	words := []string{}
	for _, w := range list {
		words = append(words, w.Host+" "+string(w.To))
	}
	return words
}

func TestPlanOfThePaper(t *testing.T) {
	reservedOn := func(name string) energy.Machine { return with(busy(name), claimed(0)) }
	six := []energy.Machine{reservedOn("r1"), reservedOn("r2"), reservedOn("r3"), busy("r4"), busy("r5"), busy("r6")}
	four := []energy.Machine{asleep("s1", 100), asleep("s2", 300), asleep("s3", 0), asleep("s4", 200)}
	for name, tc := range map[string]struct {
		machines []energy.Machine
		forecast int
		want     []string
	}{
		"A004-3: the most efficient is switched on":                       {slices.Concat(six, four), 7, []string{"s2 on"}},
		"A004-3: all are switched on, and it ends":                        {slices.Concat(six, four), 20, []string{"s2 on", "s4 on", "s1 on", "s3 on"}},
		"A004-4: those idle for long go, down to four":                    {[]energy.Machine{with(idle("r1", 10), claimed(0)), reservedOn("r2"), reservedOn("r3"), idle("r4", 5), idle("r5", 4), idle("r6", 9)}, 2, []string{"r4 off", "r6 off"}},
		"E004-6: a reserved one is switched on though enough others are":  {[]energy.Machine{busy("a"), idle("b", 1), with(asleep("s", 1), claimed(900))}, 1, []string{"s on"}},
		"E004-12: one second after the horizon it is not reserved":        {[]energy.Machine{busy("a"), idle("b", 1), with(asleep("s", 1), claimed(901))}, 1, []string{}},
		"E004-10: the least efficient goes first, and what is unknown is": {[]energy.Machine{with(idle("a", 5), func(m *energy.Machine) { m.FlopsPerWatt = 2 }), with(idle("b", 5), func(m *energy.Machine) { m.FlopsPerWatt = 1 }), idle("d", 5), idle("c", 5)}, 1, []string{"c off", "d off", "b off"}},
		"one that takes no instances does not count as on":                {[]energy.Machine{busy("a"), with(idle("b", 9), func(m *energy.Machine) { m.Closed, m.Stays = true, "its nova-compute is down" }), asleep("s", 1)}, 2, []string{"s on"}},
		"no machines": {nil, 5, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := energy.Paper().Plan(energy.Situation{Now: noon, Machines: tc.machines, Forecast: tc.forecast})
			if diff := cmp.Diff(tc.want, switched(got.Switches)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// Check A004-6: four nodes of one core for an hour; n3 is reserved.
func TestAnHourOfThePaper(t *testing.T) {
	const start, end, boot, hour = 22, 32, 2, 60
	reservation := span.Span{Start: noon.Add(start * 60), End: noon.Add(end * 60)}
	machines := make([]energy.Machine, 4)
	for i := range machines {
		machines[i] = with(idle(fmt.Sprint("n", i+1), 0), boots(boot*60))
	}
	reserved := &machines[2]
	counts, awake := map[string]int{}, map[string]span.Instant{}
	off := map[string][]energy.Level{}
	var switches []string
	for minute := range int64(hour) {
		now := noon.Add(minute * 60)
		inUse := 0
		for i := range machines {
			if m := &machines[i]; m.Phase == energy.Waking && awake[m.Name] <= now {
				m.Phase = energy.Awake
			}
		}
		if reserved.Claimed = reservation.Start; now >= reservation.End {
			reserved.Claimed = span.Forever
		}
		if reserved.Busy = reservation.Contains(now); reserved.Busy {
			inUse = 1
			if reserved.Phase != energy.Awake {
				t.Errorf("minute %d: the reservation is delayed", minute)
			}
		}
		if minute == 0 {
			continue
		}
		counts = energy.Count(counts, machines)
		for i := range machines {
			machines[i].Idle = counts[machines[i].Name]
		}
		if minute%5 != 0 {
			continue
		}
		plan := energy.Paper().Plan(energy.Situation{Now: now, Machines: machines, Forecast: inUse})
		for _, w := range plan.Switches {
			switches = append(switches, fmt.Sprintf("%d %s %s", minute, w.Host, w.To))
			m := &machines[slices.IndexFunc(machines, func(m energy.Machine) bool { return m.Name == w.Host })]
			level := energy.Level{From: now, Cores: 1}
			m.Phase = energy.Asleep
			if w.To == energy.On {
				level.Cores, m.Phase, awake[w.Host] = 0, energy.Waking, now.Add(boot*60)
			}
			off[w.Host] = append(off[w.Host], level)
		}
	}
	want := []string{"5 n1 off", "5 n2 off", "5 n3 off", "5 n4 off", "10 n3 on", "40 n3 off"}
	if diff := cmp.Diff(want, switches); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	saved := int64(0)
	for _, levels := range off {
		saved += energy.Area(levels, noon.Add(hour*60)) / 60
	}
	if saved != 190 {
		t.Errorf("%d core-minutes saved, want 190", saved)
	}
}

func TestWhyAnIdleHostStaysOn(t *testing.T) {
	rules := energy.Paper()
	rules.MinOn, rules.MinOff, rules.BootMargin = 1800, 600, 60
	rules.KeepLast = []energy.Group{energy.Zones}
	rules.MostSwitches = 4
	for name, tc := range map[string]struct {
		change func(*energy.Machine)
		halt   string
		want   string
	}{
		"fresh":           {func(m *energy.Machine) { m.Idle = 4 }, "", "it has been idle for 4 measurements, and must be for 5"},
		"halted":          {func(*energy.Machine) {}, "the inventory is stale", "nothing is switched off: the inventory is stale"},
		"must stay":       {func(m *energy.Machine) { m.Stays = "it is not admitted" }, "", "it is not admitted"},
		"held on":         {held(energy.HoldOn), "", "an operator has ordered it on: the rack is rewired"},
		"reserved":        {claimed(900), "", "it is reserved from 2027-01-15T08:15:00Z on"},
		"reserved now":    {claimed(-60), "", "it has been reserved since 2027-01-15T07:59:00Z"},
		"long boot":       {func(m *energy.Machine) { m.BootSeconds, m.Claimed = 3600, noon.Add(3660) }, "", "it is reserved from 2027-01-15T09:01:00Z on"},
		"no agent":        {func(m *energy.Machine) { m.States = nil }, "", "no agent can switch it"},
		"last of zone":    {in("other"), "", "it is the last host of the zone other that is on"},
		"just woken":      {func(m *energy.Machine) { m.LastOn = noon - 1799 }, "", "it was switched on at 2027-01-15T07:30:01Z, and stays on until 2027-01-15T08:00:01Z"},
		"switched often":  {func(m *energy.Machine) { m.Switches = 3 }, "", "it has been switched 3 times within a day, and the limit is 4"},
		"reserved soon":   {claimed(900 + 599), "", "a reservation needs it within 9m59s, and switching off pays only for 10m0s or longer"},
		"nothing against": {func(m *energy.Machine) { m.LastOn, m.Switches, m.Claimed = noon-1800, 2, noon.Add(900+600) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			machines := []energy.Machine{with(busy("other"), in("zone")), with(idle("host", 7), in("zone"), tc.change)}
			got := rules.Plan(energy.Situation{Now: noon, Machines: machines, Forecast: 1, Halt: tc.halt})
			if tc.want == "" {
				if diff := cmp.Diff([]string{"host off"}, switched(got.Switches)); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff([]energy.Kept{{Host: "host", Reason: tc.want}}, got.Kept); diff != "" || len(got.Switches) > 0 {
				t.Errorf("%v; want -, got +\n%s", got.Switches, diff)
			}
		})
	}
}

func TestSpareHostsStayOn(t *testing.T) {
	big := resource.Vector{VCPUs: 8, Custom: map[string]int64{"CUSTOM_GPU": 2}}
	gpu := func(m *energy.Machine) { m.Capacity = big }
	for name, tc := range map[string]struct {
		rules    energy.Rules
		machines []energy.Machine
		want     []string
	}{
		"a number":                      {energy.Rules{SpareHosts: 2}, []energy.Machine{busy("a"), idle("b", 9), idle("c", 9), idle("d", 9)}, []string{"b off"}},
		"percent of all, rounded up":    {energy.Rules{SparePercent: 26}, []energy.Machine{busy("a"), idle("b", 9), idle("c", 9), idle("d", 9)}, []string{"b off"}},
		"woken where there are too few": {energy.Rules{SpareHosts: 2}, []energy.Machine{busy("a"), idle("b", 9), asleep("c", 1), asleep("d", 2)}, []string{"d on"}},
		"beside reserved ones":          {energy.Rules{SpareHosts: 1}, []energy.Machine{busy("a"), with(idle("b", 9), claimed(0)), idle("c", 9), idle("d", 9)}, []string{"c off"}},
		"a class":                       {energy.Rules{SpareCapacity: resource.Vector{Custom: map[string]int64{"CUSTOM_GPU": 2}}}, []energy.Machine{busy("a"), with(idle("b", 9), gpu), with(idle("c", 9), gpu), idle("d", 9)}, []string{"b off", "d off"}},
		"a class that has to be woken":  {energy.Rules{SpareCapacity: resource.Vector{Custom: map[string]int64{"CUSTOM_GPU": 2}}}, []energy.Machine{busy("a"), asleep("b", 9), with(asleep("c", 1), gpu)}, []string{"c on"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.rules.Plan(energy.Situation{Now: noon, Machines: tc.machines, Forecast: 1})
			if diff := cmp.Diff(tc.want, switched(got.Switches)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestManualOrders(t *testing.T) {
	three := []energy.State{energy.On, energy.Standby, energy.Off}
	standby := func(m *energy.Machine) { m.States = three }
	for name, tc := range map[string]struct {
		machine energy.Machine
		halt    string
		want    []string
	}{
		"off wins over all rules":                 {with(idle("h", 0), held(energy.HoldOff), func(m *energy.Machine) { m.Switches, m.LastOn = 9, noon }), "", []string{"h off"}},
		"off does not win over its owner":         {with(idle("h", 9), held(energy.HoldOff), func(m *energy.Machine) { m.Stays = "its owner has forbidden it" }), "", []string{}},
		"standby":                                 {with(idle("h", 0), held(energy.HoldStandby), standby), "", []string{"h standby"}},
		"standby without a driver for it":         {with(idle("h", 9), held(energy.HoldStandby)), "", []string{}},
		"a wake test switches it off":             {with(idle("h", 0), held(energy.Test)), "", []string{"h off"}},
		"a wake test wakes it":                    {with(asleep("h", 0), held(energy.Test)), "", []string{"h on"}},
		"off waits for work to end":               {with(busy("h"), held(energy.HoldOff)), "", []string{}},
		"off waits for the reservation to end":    {with(idle("h", 9), held(energy.HoldOff), claimed(900)), "", []string{}},
		"off does not win over doubt":             {with(idle("h", 9), held(energy.HoldOff)), "the inventory is stale", []string{}},
		"off is not woken":                        {with(asleep("h", 9), held(energy.HoldOff)), "", []string{}},
		"off is not even woken when reserved":     {with(asleep("h", 9), held(energy.HoldOff), claimed(0)), "", []string{}},
		"off is called back where it is reserved": {with(idle("h", 0), phase(energy.Draining), held(energy.HoldOff), claimed(0)), "", []string{"h on"}},
		"on wins over doubt":                      {with(asleep("h", 0), held(energy.HoldOn)), "the inventory is stale", []string{"h on"}},
		"one that is over is none":                {with(asleep("h", 0), held(energy.HoldOn), func(m *energy.Machine) { m.Hold.Until = noon }), "", []string{}},
		"one that is stuck cannot be woken":       {with(asleep("h", 0), held(energy.HoldOn), func(m *energy.Machine) { m.Stuck = "its BMC does not answer" }), "", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := energy.Rules{Horizon: 900, IdleNeeded: 5, SpareHosts: 1, MinOn: 3600, MostOff: 1, MostSwitches: 2}
			got := rules.Plan(energy.Situation{Now: noon, Machines: []energy.Machine{tc.machine, with(asleep("spare", 0), phase(energy.Waking))}, Halt: tc.halt})
			if diff := cmp.Diff(tc.want, switched(got.Switches)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			for _, w := range got.Switches {
				if !w.Urgent {
					t.Errorf("%v is not urgent", w)
				}
			}
			if said := len(got.Kept) + len(got.Short); len(tc.want) == 0 && tc.machine.Idle == 9 && tc.machine.Phase == energy.Awake && said == 0 {
				t.Error("the plan has no reason")
			}
		})
	}
}

func TestAHostThatIsAboutToGoIsKeptBeforeOneIsWoken(t *testing.T) {
	got := energy.Paper().Plan(energy.Situation{Now: noon, Forecast: 1, Machines: []energy.Machine{asleep("a", 9), with(idle("b", 0), phase(energy.Draining))}})
	if diff := cmp.Diff([]string{"b on"}, switched(got.Switches)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestLimitsOfAPlan(t *testing.T) {
	closed := func(m *energy.Machine) { m.Closed = true }
	for name, tc := range map[string]struct {
		rules    energy.Rules
		machines []energy.Machine
		want     []string
	}{
		"hosts switched off by one plan":       {energy.Rules{MostOff: 2}, []energy.Machine{idle("a", 9), idle("b", 9), idle("c", 9), idle("d", 9)}, []string{"a off", "b off"}},
		"manual ones do not count":             {energy.Rules{MostOff: 1}, []energy.Machine{idle("a", 9), idle("b", 9), idle("c", 9), with(idle("d", 9), held(energy.HoldOff))}, []string{"d off", "a off"}},
		"the last of a zone but one":           {energy.Rules{KeepLast: []energy.Group{energy.Zones}}, []energy.Machine{with(idle("a", 9), in("z")), with(idle("b", 9), in("z")), busy("c")}, []string{"a off"}},
		"spare is not what is reserved":        {energy.Rules{SpareHosts: 1}, []energy.Machine{busy("a"), with(idle("b", 9), claimed(0)), asleep("s", 1)}, []string{"s on"}},
		"hosts in a hurry boot first":          {energy.Rules{Horizon: 900, MostBooting: 1}, []energy.Machine{with(asleep("a", 0), claimed(800)), with(asleep("b", 0), boots(1800), claimed(1800))}, []string{"b on"}},
		"a closed host that goes is no loss":   {energy.Rules{}, []energy.Machine{with(idle("a", 9), closed, held(energy.HoldOff)), idle("b", 9), asleep("s", 1)}, []string{"a off"}},
		"what goes by hand is not called back": {energy.Rules{}, []energy.Machine{with(idle("a", 0), phase(energy.Draining), held(energy.HoldOff)), with(idle("b", 0), phase(energy.Draining), held(energy.Test))}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.rules.Plan(energy.Situation{Now: noon, Machines: tc.machines, Forecast: 1})
			if diff := cmp.Diff(tc.want, switched(got.Switches)); diff != "" {
				t.Errorf("%v; want -, got +\n%s", got.Kept, diff)
			}
		})
	}
}

func TestAHostThatIsRequiredIsSaidToBe(t *testing.T) {
	got := energy.Paper().Plan(energy.Situation{Now: noon, Machines: []energy.Machine{busy("a"), idle("b", 9)}, Forecast: 2})
	if diff := cmp.Diff([]energy.Kept{{Host: "b", Reason: "2 hosts are required, and 2 are on"}}, got.Kept); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestAPlanSaysWhatItCannotMeet(t *testing.T) {
	rules := energy.Paper()
	rules.SpareHosts = 1
	got := rules.Plan(energy.Situation{Now: noon, Forecast: 5, Machines: []energy.Machine{
		busy("a"), with(asleep("b", 1), phase(energy.Failed)), with(asleep("c", 1), claimed(0), func(m *energy.Machine) { m.Stuck = "its agent is lost" }),
	}})
	for _, want := range []string{"c is needed, and is not switched on: its agent is lost", "5 hosts are required, and only 1 can be on", "1 hosts must be kept as spare, and only 0 are left"} {
		if !strings.Contains(got.Short, want) {
			t.Errorf("%q lacks %q", got.Short, want)
		}
	}
}

func TestDue(t *testing.T) {
	rules := energy.Rules{Horizon: 900, BootMargin: 60, MostBooting: 1}
	long := with(asleep("long", 0), boots(1800), claimed(1861))
	for name, tc := range map[string]struct {
		machines []energy.Machine
		want     []string
	}{
		"by the horizon":                   {[]energy.Machine{with(asleep("a", 0), boots(120), claimed(900))}, []string{"a on"}},
		"not before the horizon":           {[]energy.Machine{with(asleep("a", 0), boots(120), claimed(901))}, []string{}},
		"by its boot":                      {[]energy.Machine{with(long, claimed(1860))}, []string{"long on"}},
		"not before its boot":              {[]energy.Machine{long}, []string{}},
		"one at a time by the horizon":     {[]energy.Machine{with(asleep("b", 0), claimed(800)), with(asleep("a", 0), claimed(900))}, []string{"b on"}},
		"those whose time has come do not": {[]energy.Machine{with(asleep("b", 0), claimed(60)), with(asleep("a", 0), claimed(30)), with(asleep("c", 0), claimed(800))}, []string{"a on", "b on"}},
		"waking ones count":                {[]energy.Machine{with(asleep("w", 0), phase(energy.Waking)), with(asleep("a", 0), claimed(61))}, []string{}},
		"but not for those in a hurry":     {[]energy.Machine{with(asleep("w", 0), phase(energy.Waking)), with(asleep("a", 0), claimed(60))}, []string{"a on"}},
		"a running claim":                  {[]energy.Machine{with(asleep("a", 0), claimed(-7200))}, []string{"a on"}},
		"no claim":                         {[]energy.Machine{asleep("a", 0)}, []string{}},
		"one that is being switched off":   {[]energy.Machine{with(asleep("w", 0), phase(energy.Waking)), with(idle("a", 0), phase(energy.Draining), claimed(800))}, []string{"a on"}},
		"one that cannot be stopped now":   {[]energy.Machine{with(asleep("a", 0), phase(energy.Stopping), claimed(0))}, []string{}},
		"a broken one":                     {[]energy.Machine{with(asleep("a", 0), phase(energy.Failed), claimed(0))}, []string{}},
		"no agent":                         {[]energy.Machine{with(asleep("a", 0), claimed(0), func(m *energy.Machine) { m.States = nil })}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := rules.Due(energy.Situation{Now: noon, Machines: tc.machines, Halt: "the inventory is stale"})
			if diff := cmp.Diff(tc.want, switched(got)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

func TestHowDeepAHostSleeps(t *testing.T) {
	// 100 W idle, 10 W off and 90 kJ for a boot: switching off pays after 1000 s.
	known := energy.Draw{Idle: 100, Standby: 30, Off: 10, BootJoules: 90_000}
	three := []energy.State{energy.On, energy.Standby, energy.Off}
	for name, tc := range map[string]struct {
		draw   energy.Draw
		states []energy.State
		idle   int64 // expected
		want   []string
	}{
		"long idle":                           {known, three, 1000, []string{"h off"}},
		"under break-even":                    {known, three, 999, []string{"h standby"}},
		"under break-even, without standby":   {known, bothWays, 999, []string{}},
		"no reservation":                      {known, bothWays, int64(span.Forever), []string{"h off"}},
		"shorter than a boot":                 {known, three, 419, []string{}},
		"unknown draw":                        {energy.Draw{}, three, 420, []string{"h off"}},
		"unknown draw, shorter than a boot":   {energy.Draw{}, three, 419, []string{}},
		"standby alone":                       {energy.Draw{}, []energy.State{energy.On, energy.Standby}, 420, []string{"h standby"}},
		"standby that saves nothing":          {energy.Draw{Idle: 100, Standby: 100, Off: 10, BootJoules: 90_000}, three, 999, []string{}},
		"off saves nothing":                   {energy.Draw{Idle: 100, Off: 100, BootJoules: 1}, three, int64(span.Forever), []string{}},
		"off saves nothing, but standby does": {energy.Draw{Idle: 100, Standby: 9, Off: 100, BootJoules: 1}, three, int64(span.Forever), []string{"h standby"}},
		"a state is only asked of who has it": {known, []energy.State{energy.On}, 5000, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			rules := energy.Rules{Horizon: 900, MinOff: 300}
			m := with(idle("h", 9), claimed(900), boots(120), func(m *energy.Machine) { m.Draw, m.States = tc.draw, tc.states })
			m.Claimed = m.Claimed.Add(tc.idle)
			got := rules.Plan(energy.Situation{Now: noon, Machines: []energy.Machine{m}})
			if diff := cmp.Diff(tc.want, switched(got.Switches)); diff != "" {
				t.Errorf("%v; want -, got +\n%s", got.Kept, diff)
			}
		})
	}
}

// Check A004-5.
func TestCountBeginsAgainAfterWork(t *testing.T) {
	var got []int
	counts := map[string]int{}
	for minute := 1; minute <= 6; minute++ {
		m := idle("h", 0)
		m.Busy = minute == 5
		counts = energy.Count(counts, []energy.Machine{m, with(idle("s", 0), phase(energy.Waking))})
		got = append(got, counts["h"])
		if counts["s"] != 0 {
			t.Errorf("one that is not awake has been idle for %d", counts["s"])
		}
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 0, 1}, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}
