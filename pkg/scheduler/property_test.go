// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/weighers"
)

// pipelineOf returns Nova's default pipeline, with Nova's weighers.
func pipelineOf(tb testing.TB) scheduler.Pipeline {
	list, err := filters.New(filters.Enabled, filters.Options{Reservation: filters.Reservation{Promises: promises{}}})
	if err != nil {
		tb.Fatal(err)
	}
	weigh, err := weighers.Choose([]string{
		"CPUWeigher", "RAMWeigher", "DiskWeigher", "IoOpsWeigher", "BuildFailureWeigher",
		"ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher",
	}, nil, weighers.Ports{})
	if err != nil {
		tb.Fatal(err)
	}
	return scheduler.Pipeline{Filters: list, Weighers: weigh, SubsetSize: 1}
}

// drawRows draws a small cloud in which many instances do not fit.
func drawRows(t *rapid.T) []inventory.HostState {
	number := func(most int, label string) int64 { return int64(rapid.IntRange(0, most).Draw(t, label)) }
	rows := make([]inventory.HostState, rapid.IntRange(0, 8).Draw(t, "hosts"))
	for i := range rows {
		rows[i] = inventory.HostState{
			Name: fmt.Sprint("h", i), Node: fmt.Sprint("n", i), Cell: fmt.Sprint("cell", number(1, "cell")),
			Up: number(9, "down") > 0, Enabled: number(9, "disabled") > 0, IOOps: number(2, "operations"), FailedBuilds: number(9, "failures") / 9,
			Stocks: map[string]inventory.Stock{
				"VCPU":      {Total: 1 + number(3, "vcpus"), Ratio: 1.5, Used: number(2, "vcpus used")},
				"MEMORY_MB": {Total: 2 + number(6, "memory"), Reserved: number(2, "memory reserved"), Ratio: 1, Used: number(3, "memory used")},
				"DISK_GB":   {Total: 10, Ratio: 1, Used: number(4, "disk used")},
			},
		}
		if number(2, "fast") > 0 {
			rows[i].Traits = append(rows[i].Traits, "CUSTOM_FAST")
		}
		if number(9, "switched off") == 0 {
			rows[i].Traits = append(rows[i].Traits, "COMPUTE_STATUS_DISABLED")
		}
		for n := range number(2, "instances") {
			rows[i].Instances = append(rows[i].Instances, inventory.Instance{ID: fmt.Sprintf("old-%d-%d", i, n)})
		}
	}
	return rows
}

func drawRequest(t *rapid.T, rows []inventory.HostState) *placing.Request {
	r := &placing.Request{
		ID: "req-1", ProjectID: "demo", Alternates: rapid.IntRange(0, 3).Draw(t, "alternates"),
		Resources: map[string]int64{
			"VCPU": int64(rapid.IntRange(0, 2).Draw(t, "vcpu")), "MEMORY_MB": int64(rapid.IntRange(0, 3).Draw(t, "ram")), "DISK_GB": int64(rapid.IntRange(0, 2).Draw(t, "disk")),
		},
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "wanted") {
		r.Instances = append(r.Instances, fmt.Sprint("new-", i))
	}
	if rapid.Bool().Draw(t, "fast only") {
		r.Required = []string{"CUSTOM_FAST"}
	}
	name := func() string { return rapid.SampledFrom(rows).Draw(t, "host").Name }
	if len(rows) > 0 && rapid.IntRange(0, 3).Draw(t, "ignoring") == 0 {
		r.IgnoreHosts = []string{name()}
	}
	if len(rows) > 0 && rapid.IntRange(0, 5).Draw(t, "forced") == 0 {
		r.ForceHosts = []string{name()}
	}
	if policy := rapid.SampledFrom([]string{"", "affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"}).Draw(t, "policy"); policy != "" {
		r.Group = &placing.Group{ID: "group", Policy: policy, MaxPerHost: rapid.IntRange(0, 2).Draw(t, "most")}
		for _, row := range rows {
			if len(row.Instances) > 0 && rapid.IntRange(0, 4).Draw(t, "member") == 0 {
				r.Group.Hosts, r.Group.Members = append(r.Group.Hosts, row.Name), append(r.Group.Members, row.Instances[0].ID)
			}
		}
	}
	return r
}

func TestPlansAreThoseOfOneHostAfterTheOther(t *testing.T) {
	p := pipelineOf(t)
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		r := drawRequest(t, rows)
		want := newNaive(rows, r).plan(r)
		plan := p.Plan(statesOf(t, rows), r, 0, nil)
		if diff := cmp.Diff(want, plan.Decision.Placements); diff != "" {
			t.Fatal(diff)
		}
		if len(plan.Picks) != len(want) || want == nil && plan.Decision.Reason == "" || want != nil && plan.Decision.Reason != "" {
			t.Fatalf("%d picks for %d placements, and the reason %q", len(plan.Picks), len(want), plan.Decision.Reason)
		}
	})
}

func TestPlansByChanceKeepEveryRule(t *testing.T) {
	p := pipelineOf(t)
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		r := drawRequest(t, rows)
		p.SubsetSize, p.ShuffleBest = rapid.IntRange(0, 4).Draw(t, "subset"), rapid.Bool().Draw(t, "shuffle")
		seed := rapid.Uint64().Draw(t, "seed")
		s := statesOf(t, rows)
		before := cmp.Diff(rows, nil)
		plan := p.Plan(s, r, 0, rand.New(rand.NewPCG(seed, 0)).IntN)
		if cmp.Diff(rows, nil) != before {
			t.Fatal("planning has changed its input states")
		}
		if len(plan.Picks) != 0 && len(plan.Picks) != len(r.Instances) {
			t.Fatalf("%d of %d instances are placed", len(plan.Picks), len(r.Instances))
		}
		naive := newNaive(rows, r)
		var groupHosts []string
		if r.Group != nil {
			groupHosts = slices.Clone(r.Group.Hosts)
		}
		for i, pick := range plan.Picks {
			h := naive.hosts[pick.Take.Host]
			if pick.Take.Instance != r.Instances[i] || !h.holds(r, groupHosts) {
				t.Fatalf("%s goes to %s, which may not hold it", pick.Take.Instance, h.Name)
			}
			for class, amount := range pick.Take.Resources {
				stock := h.Stocks[class]
				stock.Used += amount
				h.Stocks[class] = stock
			}
			h.members++
			if len(r.Instances) > 1 { // the alternate of a single instance replaces it, and is not beside it
				groupHosts = append(groupHosts, h.Name)
			}
		}
		for _, pick := range plan.Picks {
			if len(pick.Alternates) > r.Alternates {
				t.Fatalf("%d alternates, want %d at most", len(pick.Alternates), r.Alternates)
			}
			for _, a := range pick.Alternates {
				if slices.ContainsFunc(plan.Picks, func(p scheduler.Pick) bool { return p.Take.Host == a }) {
					t.Fatalf("host %d is an alternate and chosen", a)
				}
				if naive.hosts[a].Cell != naive.hosts[pick.Take.Host].Cell || !naive.hosts[a].holds(r, groupHosts) {
					t.Fatalf("host %d is an alternate and cannot be", a)
				}
			}
		}
		// The same seed returns the same plan, whatever the order of the hosts.
		other := slices.Clone(rows)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		again := p.Plan(statesOf(t, other), r, 0, rand.New(rand.NewPCG(seed, 0)).IntN)
		if diff := cmp.Diff(plan, again); diff != "" {
			t.Fatalf("the same seed makes another plan: %s", diff)
		}
	})
}

// statesOf returns states of copies of rows.
func statesOf(t interface{ Fatal(...any) }, rows []inventory.HostState, aggregates ...inventory.Aggregate) *inventory.States {
	s, err := inventory.NewStates(rows, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
