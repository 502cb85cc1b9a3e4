// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// equalHosts returns this many hosts with room for four vCPUs each.
func equalHosts(hosts int) []inventory.HostState {
	rows := make([]inventory.HostState, hosts)
	for i := range rows {
		rows[i] = inventory.HostState{
			Name: fmt.Sprintf("h%03d", i), Node: fmt.Sprintf("n%03d", i), Up: true, Enabled: true,
			Stocks: map[string]inventory.Stock{"VCPU": {Total: 4, Ratio: 1}},
		}
	}
	return rows
}

func requestFor(vcpus int64, instances ...string) *placing.Request {
	return &placing.Request{Instances: instances, Resources: map[string]int64{"VCPU": vcpus}}
}

// refuse is a filter that refuses its hosts, with a reason for each.
type refuse struct {
	name    string
	reasons map[int]string
	asked   *int // counts the requests for reasons
}

func (f refuse) Name() string { return f.name }

func (f refuse) For(*inventory.States, *placing.Request, span.Instant) filters.Test { return f }

func (f refuse) Keep(hosts hostset.Set) {
	for i := range f.reasons {
		hosts.Remove(i)
	}
}

func (f refuse) Why(i int) string {
	if f.asked != nil {
		*f.asked++
	}
	return f.reasons[i]
}

func TestTheReasonIsASentenceForTheTenant(t *testing.T) {
	same := map[int]string{0: "the hosts are asleep", 1: "the hosts are asleep"}
	for name, tc := range map[string]struct {
		filters   []filters.Filter
		hosts     int
		instances []string
		want      string
	}{
		"no host is known":      {nil, 0, []string{"a"}, "There are not enough hosts available. None is known."},
		"no host, with filters": {[]filters.Filter{refuse{name: "F"}}, 0, []string{"a"}, "There are not enough hosts available. None is known."},
		"no instance":           {nil, 2, nil, "The request contains no instance."},
		"one reason for all":    {[]filters.Filter{refuse{name: "ReservationFilter", reasons: same}}, 2, []string{"a"}, "The hosts are asleep."},
		"one that is the operator's": {
			[]filters.Filter{refuse{name: "ComputeFilter", reasons: same}}, 2, []string{"a"}, "There are not enough hosts available. ComputeFilter refused the last 2.",
		},
		"several reasons": {
			[]filters.Filter{refuse{name: "F", reasons: map[int]string{0: "one", 1: "two"}}}, 2, []string{"a"},
			"There are not enough hosts available. F refused the last 2.",
		},
		"one reason for all that another filter has left": {
			[]filters.Filter{refuse{name: "E", reasons: map[int]string{2: "other"}}, refuse{name: "ReservationFilter", reasons: same}}, 3, []string{"a"},
			"The hosts are asleep.",
		},
		"for the second instance": {
			[]filters.Filter{filters.Capacity{}}, 1, []string{"a", "b"},
			"There is no host for instance 2 of 2: 1 VCPU are free, 3 are requested.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := scheduler.Pipeline{Filters: tc.filters}
			r := requestFor(3, tc.instances...)
			r.Hints = map[string][]string{placing.ReservationHint: {"r1"}}
			plan := p.Plan(statesOf(t, equalHosts(tc.hosts)), r, 0, nil)
			if got := plan.Decision.Reason; got != tc.want {
				t.Errorf("the reason is %q, want %q", got, tc.want)
			}
			if plan.Picks != nil || plan.Decision.Placements != nil {
				t.Errorf("it has picked %v", plan.Picks)
			}
		})
	}
}

func TestOutsideAReservationNoReasonOfAHostIsTold(t *testing.T) {
	p := scheduler.Pipeline{Filters: []filters.Filter{filters.Capacity{}}}
	plan := p.Plan(statesOf(t, equalHosts(2)), requestFor(1000, "a"), 0, nil)
	if got := plan.Decision.Reason; got != "There are not enough hosts available. CapacityFilter refused the last 2." {
		t.Errorf("the reason is %q", got)
	}
}

func TestWhoNamesAHostIsToldWhyItIsRefused(t *testing.T) {
	reserved := refuse{name: "ReservationFilter", reasons: map[int]string{0: "the host is reserved until 10:00"}}
	for name, force := range map[string]func(*placing.Request){
		"forced host": func(r *placing.Request) { r.ForceHosts = []string{"h0"} },
		"forced node": func(r *placing.Request) { r.ForceNodes = []string{"h0"} },
		"host":        func(r *placing.Request) { r.Host = "h0" },
	} {
		p := scheduler.Pipeline{Filters: []filters.Filter{reserved}}
		r := requestFor(1, "a")
		force(r)
		if got := p.Plan(statesOf(t, equalHosts(1)), r, 0, nil).Decision.Reason; got != "The host is reserved until 10:00." {
			t.Errorf("a %s: the reason is %q", name, got)
		}
	}
}

func TestADecisionExplainsItself(t *testing.T) {
	p := scheduler.Pipeline{
		Filters: []filters.Filter{
			refuse{name: "E", reasons: map[int]string{1: "asleep"}}, refuse{name: "none"}, refuse{name: "F", reasons: map[int]string{0: "too old", 3: "too new"}},
		},
		Weighers: []weighers.Weighted{{Weigher: weighers.CPUWeigher{}, Multiplier: 2, Min: new(0.0)}},
	}
	rows := equalHosts(5)
	rows[4].Stocks["VCPU"] = inventory.Stock{Total: 8, Ratio: 1}
	r := requestFor(1, "a")
	r.ID, r.ProjectID, r.Alternates, r.Hints = "req-1", "demo", 2, map[string][]string{"reservation": {"r1"}}
	got := p.Plan(statesOf(t, rows), r, 7, nil).Decision
	want := placing.Decision{
		RequestID: "req-1", ProjectID: "demo", Instances: []string{"a"}, Reservation: "r1", At: 7, Considered: 5,
		Placements: []placing.Placement{{Instance: "a", Host: "h004", Node: "n004", Alternates: []string{"h002"}}},
		Filters:    []placing.FilterCount{{Filter: "E", Left: 4}, {Filter: "none", Left: 4}, {Filter: "F", Left: 2}},
		Refused: []placing.RefusedHost{
			{Host: "h001", Filter: "E", Reason: "asleep"}, {Host: "h000", Filter: "F", Reason: "too old"}, {Host: "h003", Filter: "F", Reason: "too new"},
		},
		Ranked: []placing.RankedHost{
			{Host: "h004", Weight: 2, Parts: map[string]float64{"CPUWeigher": 2}}, {Host: "h002", Weight: 1, Parts: map[string]float64{"CPUWeigher": 1}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsRecordedIsBounded(t *testing.T) {
	most, few := refuse{name: "Most", reasons: map[int]string{}, asked: new(0)}, refuse{name: "Few", reasons: map[int]string{999: "old"}, asked: new(0)}
	for i := range 900 {
		most.reasons[i] = "asleep"
	}
	p := scheduler.Pipeline{Filters: []filters.Filter{most, few}}
	d := p.Plan(statesOf(t, equalHosts(1000)), requestFor(1, "a"), 0, nil).Decision
	if len(d.Refused) != 51 || d.Refused[50].Filter != "Few" {
		t.Errorf("%d refused hosts are recorded, want half of 100 of the one filter, and the one of the other", len(d.Refused))
	}
	if *most.asked != 50 || *few.asked != 1 {
		t.Errorf("the filters were asked for reasons %d and %d times", *most.asked, *few.asked)
	}
	if len(d.Ranked) != 20 {
		t.Errorf("%d ranked hosts are recorded, want 20", len(d.Ranked))
	}
}

// back is a filter that wrongly adds hosts.
type back struct{ refuse }

func (b back) For(*inventory.States, *placing.Request, span.Instant) filters.Test { return b }

func (back) Keep(hosts hostset.Set) { copy(hosts, hostset.Full(2)) }

func TestAFilterBringsNoHostBack(t *testing.T) {
	p := scheduler.Pipeline{Filters: []filters.Filter{refuse{name: "F", reasons: map[int]string{0: "asleep"}}, back{}}}
	plan := p.Plan(statesOf(t, equalHosts(2)), requestFor(1, "a"), 0, nil)
	if len(plan.Picks) != 1 || plan.Picks[0].Take.Host != 1 {
		t.Errorf("it picks %v, want host 1", plan.Picks)
	}
}

func TestOneIsDrawnAmongEqualHosts(t *testing.T) {
	s := statesOf(t, equalHosts(40))
	for name, p := range map[string]scheduler.Pipeline{"the first": {}, "all shuffled": {ShuffleBest: true}} {
		t.Run(name, func(t *testing.T) {
			r := requestFor(1, "a")
			r.Alternates = 2
			draw := rand.New(rand.NewPCG(1, 1)).IntN
			const plans = 8000
			chosen, next := make([]int, 40), make([]int, 40)
			for range plans {
				pick := p.Plan(s, r, 0, draw).Picks[0]
				chosen[pick.Take.Host]++
				next[pick.Alternates[0]]++
			}
			// 200 are expected on each host; the standard deviation is 14.
			if slices.Min(chosen) < 130 || slices.Max(chosen) > 270 {
				t.Errorf("hosts are chosen %v times", chosen)
			}
			if evenly := slices.Min(next) >= 130 && slices.Max(next) <= 270; evenly != p.ShuffleBest {
				t.Errorf("hosts are the first alternate %v times", next)
			}
		})
	}
	t.Run("by name without a draw", func(t *testing.T) {
		p := scheduler.Pipeline{ShuffleBest: true, SubsetSize: 3}
		if pick := p.Plan(s, requestFor(1, "a"), 0, nil).Picks[0]; pick.Take.Host != 0 {
			t.Errorf("host %d is chosen, want the first", pick.Take.Host)
		}
	})
}

func TestOneIsDrawnAmongTheBest(t *testing.T) {
	rows := equalHosts(6)
	for i := range rows {
		rows[i].Stocks["VCPU"] = inventory.Stock{Total: int64(10 + i), Ratio: 1}
	}
	s := statesOf(t, rows)
	p := scheduler.Pipeline{Weighers: []weighers.Weighted{{Weigher: weighers.CPUWeigher{}, Multiplier: 1}}, SubsetSize: 3}
	r := requestFor(1, "a")
	r.Alternates = 5
	seen := map[string]bool{}
	draw := rand.New(rand.NewPCG(1, 1)).IntN
	for range 200 {
		pick := p.Plan(s, r, 0, draw).Picks[0]
		seen[fmt.Sprint(pick.Take.Host, pick.Alternates)] = true
	}
	// The other hosts keep their order.
	want := map[string]bool{"5 [4 3 2 1 0]": true, "4 [5 3 2 1 0]": true, "3 [5 4 2 1 0]": true}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestAlternatesAreFoundInASmallCell(t *testing.T) {
	rows := equalHosts(200)
	for i := range rows {
		rows[i].Cell = "large"
	}
	rows[0].Cell, rows[150].Cell, rows[180].Cell = "small", "small", "small"
	p := scheduler.Pipeline{}
	r := requestFor(1, "a")
	r.Alternates = 5
	pick := p.Plan(statesOf(t, rows), r, 0, nil).Picks[0]
	if diff := cmp.Diff([]int{150, 180}, pick.Alternates); diff != "" || pick.Take.Host != 0 {
		t.Errorf("host %d is chosen; %s", pick.Take.Host, diff)
	}
}

func TestAnotherInstanceSeesTheGroupOfThoseBefore(t *testing.T) {
	p := pipelineOf(t)
	for policy, want := range map[string][]int{"affinity": {0, 0, 0}, "anti-affinity": {0, 1, 2}} {
		r := requestFor(1, "a", "b", "c")
		r.Group = &placing.Group{ID: "g", Policy: policy}
		plan := p.Plan(statesOf(t, equalHosts(3)), r, 0, nil)
		var got []int
		for _, pick := range plan.Picks {
			got = append(got, pick.Take.Host)
			if pick.Take.Group != "g" {
				t.Errorf("%s: the take is of group %q", policy, pick.Take.Group)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the instances go to %v, want %v", policy, got, want)
		}
		if len(r.Group.Hosts)+len(r.Group.Members) > 0 {
			t.Errorf("%s: the group of the request has changed", policy)
		}
	}
}

func TestAForcedHostPassesNovasFiltersButNotPlacement(t *testing.T) {
	rows := equalHosts(3)
	rows[1].Up = false
	p := pipelineOf(t)
	r := requestFor(4, "a")
	r.ForceHosts = []string{"H001"}
	plan := p.Plan(statesOf(t, rows), r, 0, nil)
	if len(plan.Picks) != 1 || plan.Picks[0].Take.Host != 1 {
		t.Errorf("it picks %v, want host 1: %s", plan.Picks, plan.Decision.Reason)
	}
	r.Resources["VCPU"] = 5
	if plan := p.Plan(statesOf(t, rows), r, 0, nil); len(plan.Picks) != 0 || plan.Decision.Reason != "4 VCPU are free, 5 are requested." {
		t.Errorf("it picks %v: %s", plan.Picks, plan.Decision.Reason)
	}
}

func TestARebuildTakesNothing(t *testing.T) {
	rows := equalHosts(2)
	rows[1].Stocks["VCPU"] = inventory.Stock{Total: 4, Ratio: 1, Used: 4}
	p := pipelineOf(t)
	r := requestFor(4, "a")
	r.Rebuild, r.ForceHosts, r.Hints = true, []string{"h001"}, map[string][]string{"_nova_check_type": {"rebuild"}}
	plan := p.Plan(statesOf(t, rows), r, 0, nil)
	if diff := cmp.Diff([]scheduler.Pick{{Take: inventory.Take{Host: 1, Instance: "a"}}}, plan.Picks); diff != "" {
		t.Error(diff, plan.Decision.Reason)
	}
}

func TestPlansAreMadeAtOnceByMany(t *testing.T) {
	s, claims := manyHosts(t, 500)
	p := scheduler.Pipeline{
		Filters: pipelineOf(t).Filters, Weighers: allWeighers(t, weighers.Ports{Promises: claims, Efficiencies: efficiencyOf(t, s)}), SubsetSize: 1,
	}
	r := requestFor(2, "a", "b", "c")
	r.Alternates = 2
	want := p.Plan(s, r, 0, nil)
	plans := make(chan scheduler.Plan)
	const many = 8
	for range many {
		go func() { plans <- p.Plan(s, r, 0, nil) }()
	}
	for range many {
		if diff := cmp.Diff(want, <-plans); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSomeFiltersAreAskedOncePerRequest(t *testing.T) {
	s, err := inventory.NewStates(equalHosts(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"ComputeCapabilitiesFilter": 2, "JsonFilter": 0} {
		list, err := filters.New([]string{name}, filters.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := requestFor(1, "one", "two")
		r.ExtraSpecs, r.Hints = map[string]string{"capabilities:vcpus_used": "== 0"}, map[string][]string{"query": {`["=", "$vcpus_used", 0]`}}
		p := scheduler.Pipeline{Filters: slices.DeleteFunc(list, func(f filters.Filter) bool { return f.Name() != name })}
		if got := p.Plan(s, r, 0, nil).Picks; len(got) != want {
			t.Errorf("%s lets %d instances on a host without any, want %d", name, len(got), want)
		}
	}
}
