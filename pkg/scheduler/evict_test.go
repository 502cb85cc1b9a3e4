// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// written is the cost that is stored in an instance's Created.
type written struct{}

func (written) Name() string                                   { return "written" }
func (written) Unit() string                                   { return "s" }
func (written) Of(i *inventory.Instance, _ span.Instant) int64 { return int64(i.Created) }

// evicting returns a pipeline in which only room counts, and the cost of making it.
func evicting(names ...string) scheduler.Pipeline {
	evictor := &preemption.Evictor{Cost: written{}}
	weigh, err := weighers.Choose(names, nil, weighers.Ports{Evictor: evictor, Period: written{}})
	if err != nil {
		panic(err)
	}
	return scheduler.Pipeline{Filters: []filters.Filter{filters.Capacity{Evicts: true}}, Weighers: weigh, SubsetSize: 1, Evictor: evictor, Spares: true}
}

// filler returns a preemptible instance that runs and holds part of its host.
func filler(id string, cost, vcpus, memory int64) inventory.Instance {
	return inventory.Instance{
		ID: id, Status: "ACTIVE", Preemptible: true, Created: span.Instant(cost), Holds: map[string]int64{"VCPU": vcpus, "MEMORY_MB": memory},
	}
}

// filled returns hosts of this size with their instances; normal is the VCPU that other instances
// use.
func filled(t interface{ Fatal(...any) }, vcpus, memory int64, hosts map[string][]inventory.Instance, normal map[string]int64) *inventory.States {
	var rows []inventory.HostState
	for name, instances := range hosts {
		stocks := map[string]inventory.Stock{"VCPU": {Total: vcpus, Ratio: 1, Used: normal[name]}, "MEMORY_MB": {Total: memory, Ratio: 1}}
		for _, i := range instances {
			for class, amount := range i.Holds {
				stock := stocks[class]
				stock.Used += amount
				stocks[class] = stock
			}
		}
		rows = append(rows, inventory.HostState{Name: name, Node: name, Up: true, Enabled: true, Instances: slices.Clone(instances), Stocks: stocks})
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wants(vcpus, memory int64, instances ...string) *placing.Request {
	return &placing.Request{Instances: instances, Resources: map[string]int64{"VCPU": vcpus, "MEMORY_MB": memory}}
}

// placedAs returns where instances go and which ones leave, as "host: victims".
func placedAs(p scheduler.Plan) (list []string) {
	for _, one := range p.Decision.Placements {
		text := one.Host
		for n, v := range one.Victims {
			text += map[bool]string{true: ": ", false: " "}[n == 0] + v.ID
		}
		list = append(list, text)
	}
	return list
}

func TestTheCheapestVictimsLeaveAndNobodyWhereThereIsRoom(t *testing.T) {
	full := map[string][]inventory.Instance{
		"a": {filler("a1", 30, 2, 2), filler("a2", 20, 2, 2)},
		"b": {filler("b1", 5, 1, 1), filler("b2", 6, 1, 1), filler("b3", 40, 2, 2)},
		"c": {filler("c1", 12, 2, 2), filler("c2", 50, 2, 2)},
	}
	with := func(change func(h map[string][]inventory.Instance)) map[string][]inventory.Instance {
		hosts := map[string][]inventory.Instance{}
		for name, instances := range full {
			hosts[name] = slices.Clone(instances)
		}
		change(hosts)
		return hosts
	}
	for name, tc := range map[string]struct {
		hosts   map[string][]inventory.Instance
		request *placing.Request
		want    []string
	}{
		"two small ones":                  {full, wants(2, 2, "new"), []string{"b: b1 b2"}},
		"one that is enough":              {full, wants(1, 1, "new"), []string{"b: b1"}},
		"a whole host":                    {full, wants(4, 4, "new"), []string{"a: a1 a2"}},
		"more than any host has":          {full, wants(5, 1, "new"), nil},
		"a preemptible one evicts nobody": {full, &placing.Request{Instances: []string{"new"}, Preemptible: true, Resources: wants(1, 1).Resources}, nil},
		"several, one after the other":    {full, wants(2, 2, "n1", "n2", "n3"), []string{"b: b1 b2", "c: c1", "a: a2"}},
		"of several none that is needless": {
			map[string][]inventory.Instance{"a": {filler("large", 10, 3, 3), filler("small", 1, 1, 1)}}, wants(1, 1, "n1", "n2"), []string{"a", "a: large"},
		},
		"several, or none":                  {full, wants(4, 4, "n1", "n2", "n3", "n4"), nil},
		"nobody leaves where there is room": {with(func(h map[string][]inventory.Instance) { h["d"] = []inventory.Instance{filler("d1", 0, 1, 1)} }), wants(2, 2, "new"), []string{"d"}},
		"a locked one stays":                {with(func(h map[string][]inventory.Instance) { h["b"][0].Locked = true }), wants(2, 2, "new"), []string{"c: c1"}},
		"a protected one stays":             {with(func(h map[string][]inventory.Instance) { h["b"][1].Protected = true }), wants(2, 2, "new"), []string{"c: c1"}},
		"one that moves stays":              {with(func(h map[string][]inventory.Instance) { h["b"][1].Task = "migrating" }), wants(2, 2, "new"), []string{"c: c1"}},
		"one being resized stays":           {with(func(h map[string][]inventory.Instance) { h["b"][1].Status = "VERIFY_RESIZE" }), wants(2, 2, "new"), []string{"c: c1"}},
		"a normal one stays":                {with(func(h map[string][]inventory.Instance) { h["b"][1].Preemptible = false }), wants(2, 2, "new"), []string{"c: c1"}},
		"of equal ones the first host":      {with(func(h map[string][]inventory.Instance) { h["b"] = h["b"][2:]; h["a"][1].Created = 12 }), wants(4, 4, "new"), []string{"b: b3"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := evicting("PreemptionCostWeigher")
			plan := p.Plan(filled(t, 4, 4, tc.hosts, nil), tc.request, 0, nil)
			if diff := gocmp.Diff(tc.want, placedAs(plan)); diff != "" {
				t.Errorf("%s\n%s", diff, plan.Decision.Reason)
			}
			for i, pick := range plan.Picks {
				var ids []string
				for _, v := range plan.Decision.Placements[i].Victims {
					ids = append(ids, v.ID)
				}
				if !slices.Equal(ids, pick.Take.Victims) {
					t.Errorf("the take has the victims %q, the decision %q", pick.Take.Victims, ids)
				}
			}
		})
	}
}

func TestThoseWhoComeAfterTheLastRoomIsTakenHaveRoomMadeToo(t *testing.T) {
	p := evicting("PreemptionCostWeigher")
	s := filled(t, 4, 4, map[string][]inventory.Instance{"a": {filler("a1", 7, 4, 4)}, "b": nil, "c": {filler("c1", 5, 4, 4)}}, nil)
	got := placedAs(p.Plan(s, wants(4, 4, "x", "y", "z"), 0, nil))
	if diff := gocmp.Diff([]string{"b", "c: c1", "a: a1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlyHostsWithRoomAreAlternates(t *testing.T) {
	s := filled(t, 4, 4, map[string][]inventory.Instance{
		"a": {filler("a1", 1, 4, 4)}, "b": {filler("b1", 2, 4, 4)}, "c": nil, "d": nil,
	}, nil)
	p := evicting("PreemptionCostWeigher")
	r := wants(4, 4, "new")
	r.Alternates = 3
	for _, first := range []bool{true, false} {
		p.Spares = first
		if got := p.Plan(s, r, 0, nil).Decision.Placements[0]; got.Host != "c" || !slices.Equal(got.Alternates, []string{"d"}) {
			t.Errorf("it goes to %s, else to %q", got.Host, got.Alternates)
		}
	}
	r.Instances = []string{"n1", "n2", "n3"}
	if got := p.Plan(s, r, 0, nil).Decision.Placements; got[2].Host != "a" || len(got[0].Alternates)+len(got[2].Alternates) > 0 {
		t.Errorf("with nothing left there are alternates: %v", got)
	}
}

func TestThePartsOfAWeightAreItsSumAlsoWhereCostsAreNotExact(t *testing.T) {
	hosts := map[string][]inventory.Instance{}
	for i := range 200 {
		name := fmt.Sprintf("h%03d", i)
		hosts[name] = []inventory.Instance{filler(name, int64(1000-i), 4, 4)}
	}
	p := evicting("PreemptionCostWeigher")
	p.Weighers[0].Multiplier = -1 // the most expensive first, whose costs are not exact
	for _, one := range p.Plan(filled(t, 6, 4, hosts, nil), wants(1, 4, "new"), 0, nil).Decision.Ranked {
		sum := 0.0
		for _, part := range one.Parts {
			sum += part
		}
		if math.Abs(sum-one.Weight) > 1e-3 {
			t.Errorf("host %s weighs %v, and its parts are %v", one.Host, one.Weight, one.Parts)
		}
	}
}

func TestNobodyDearerLeavesByChance(t *testing.T) {
	s := filled(t, 4, 4, map[string][]inventory.Instance{
		"a": {filler("a1", 3, 4, 4)}, "b": {filler("b1", 2, 4, 4)}, "c": {filler("c1", 1, 4, 4)},
	}, nil)
	p := evicting("PreemptionCostWeigher")
	p.SubsetSize = 3
	draw := rand.New(rand.NewPCG(1, 1)).IntN
	for range 20 {
		if got := placedAs(p.Plan(s, wants(1, 1, "new"), 0, draw)); !slices.Equal(got, []string{"c: c1"}) {
			t.Fatalf("it goes to %q", got)
		}
	}
}

// drawFilled draws a small cloud that is nearly full.
func drawFilled(t *rapid.T) (map[string][]inventory.Instance, map[string]int64) {
	hosts, normal := map[string][]inventory.Instance{}, map[string]int64{}
	for h := range rapid.IntRange(1, 5).Draw(t, "hosts") {
		name, room := fmt.Sprint("h", h), int64(8)
		normal[name] = rapid.Int64Range(0, 3).Draw(t, "normal")
		room -= normal[name]
		for n := 0; room > 0 && n < 6 && rapid.IntRange(0, 9).Draw(t, "more") > 0; n++ {
			one := filler(fmt.Sprintf("%s-%d", name, n), rapid.Int64Range(0, 5).Draw(t, "cost"), rapid.Int64Range(1, min(room, 3)).Draw(t, "vcpus"), rapid.Int64Range(1, 3).Draw(t, "memory"))
			one.Locked = rapid.IntRange(0, 5).Draw(t, "locked") == 0
			room -= one.Holds["VCPU"]
			hosts[name] = append(hosts[name], one)
		}
		if hosts[name] == nil {
			hosts[name] = []inventory.Instance{}
		}
	}
	return hosts, normal
}

// choice is a host and its victims.
type choice struct {
	cost    int64
	host    string
	victims []string
}

// cheapest searches all subsets of the instances of all hosts, with 8 VCPU and 18 of memory each.
func cheapest(hosts map[string][]inventory.Instance, normal map[string]int64, vcpus, memory int64) (best *choice) {
	for name, instances := range hosts {
		for set := range 1 << len(instances) {
			c := choice{host: name}
			freeVCPU, freeMemory := 8-normal[name], int64(18)
			for n, i := range instances {
				if set&(1<<n) == 0 {
					freeVCPU, freeMemory = freeVCPU-i.Holds["VCPU"], freeMemory-i.Holds["MEMORY_MB"]
				} else if c.cost, c.victims = c.cost+int64(i.Created), append(c.victims, i.ID); i.Locked {
					freeVCPU = -1
				}
			}
			if freeVCPU < vcpus || freeMemory < memory {
				continue
			}
			slices.Sort(c.victims)
			if best == nil || cmp.Or(
				// A host with room precedes all others.
				cmp.Compare(min(len(c.victims), 1), min(len(best.victims), 1)), cmp.Compare(c.cost, best.cost), cmp.Compare(c.host, best.host),
				cmp.Compare(len(c.victims), len(best.victims)), slices.Compare(c.victims, best.victims),
			) < 0 {
				best = &c
			}
		}
	}
	return best
}

func TestVictimsAreTheCheapestOfAllHostsAndSubsets(t *testing.T) {
	p := evicting("PreemptionCostWeigher")
	rapid.Check(t, func(t *rapid.T) {
		hosts, normal := drawFilled(t)
		vcpus, memory := rapid.Int64Range(1, 6).Draw(t, "vcpus asked for"), rapid.Int64Range(0, 6).Draw(t, "memory asked for")
		s := filled(t, 8, 18, hosts, normal)
		for n := range rapid.IntRange(1, 3).Draw(t, "requests") {
			want := cheapest(hosts, normal, vcpus, memory)
			plan := p.Plan(s, wants(vcpus, memory, fmt.Sprint("new-", n)), 0, nil)
			if want == nil {
				if plan.Picks != nil {
					t.Fatalf("there is no room, and it goes to %q", placedAs(plan))
				}
				return
			}
			if len(plan.Picks) == 0 || plan.Decision.Placements[0].Host != want.host || !slices.Equal(plan.Picks[0].Take.Victims, want.victims) {
				t.Fatalf("%q, want %+v", placedAs(plan), *want)
			}
			s = s.WithTaken([]inventory.Take{plan.Picks[0].Take})
			hosts[want.host] = slices.DeleteFunc(slices.Clone(hosts[want.host]), func(i inventory.Instance) bool { return slices.Contains(want.victims, i.ID) })
			one := filler("new", 0, vcpus, memory)
			one.Locked = true // a locked instance stays
			hosts[want.host] = append(hosts[want.host], one)
		}
	})
}

func TestNobodyLeavesWhomAllInstancesOfARequestCouldDoWithout(t *testing.T) {
	p := evicting("PreemptionCostWeigher")
	rapid.Check(t, func(t *rapid.T) {
		hosts, normal := drawFilled(t)
		vcpus, memory := rapid.Int64Range(1, 3).Draw(t, "vcpus asked for"), rapid.Int64Range(0, 3).Draw(t, "memory asked for")
		s := filled(t, 8, 18, hosts, normal)
		plan := p.Plan(s, wants(vcpus, memory, "n1", "n2", "n3"), 0, nil)
		left := map[string][]*inventory.Instance{}
		news := map[string]int64{}
		for _, pick := range plan.Picks {
			host := s.Host(pick.Take.Host).Name
			news[host]++
			left[host] = append(left[host], pick.Victims.Instances...)
		}
		for host, victims := range left {
			freeVCPU, freeMemory := 8-normal[host]-news[host]*vcpus, 18-news[host]*memory
			for _, i := range hosts[host] {
				freeVCPU, freeMemory = freeVCPU-i.Holds["VCPU"], freeMemory-i.Holds["MEMORY_MB"]
			}
			for _, v := range victims {
				freeVCPU, freeMemory = freeVCPU+v.Holds["VCPU"], freeMemory+v.Holds["MEMORY_MB"]
			}
			if freeVCPU < 0 || freeMemory < 0 {
				t.Fatalf("host %s is over its capacity", host)
			}
			for _, v := range victims {
				if freeVCPU >= v.Holds["VCPU"] && freeMemory >= v.Holds["MEMORY_MB"] {
					t.Fatalf("%s leaves %s for nothing: %q", v.ID, host, placedAs(plan))
				}
			}
		}
	})
}

// retry is the retry scheduler of paper 001: first the full state, and only if that fails the
// normal one, with victims.
func retry(p scheduler.Pipeline, s *inventory.States, r *placing.Request, draw func(int) int) scheduler.Plan {
	plain := p
	plain.Evictor, plain.Filters = nil, []filters.Filter{filters.Capacity{}}
	if plan := plain.Plan(s, r, 0, draw); len(plan.Picks) > 0 {
		return plan
	}
	return p.Plan(s, r, 0, draw)
}

func TestRetryAndOnePassChooseTheSame(t *testing.T) {
	p := evicting("CPUWeigher", "PreemptionCostWeigher")
	rapid.Check(t, func(t *rapid.T) {
		hosts, normal := drawFilled(t)
		r := wants(rapid.Int64Range(1, 6).Draw(t, "vcpus"), rapid.Int64Range(0, 6).Draw(t, "memory"), "new")
		s := filled(t, 8, 18, hosts, normal)
		seed := rapid.Uint64().Draw(t, "seed")
		chance := func() func(int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }
		if diff := gocmp.Diff(placedAs(retry(p, s, r, chance())), placedAs(p.Plan(s, r, 0, chance()))); diff != "" {
			t.Fatal(diff)
		}
	})
}
