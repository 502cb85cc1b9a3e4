// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/weighers"
)

// changing are promises, and efficiencies, that change during a test.
type changing struct {
	promises
	efficiencies
	revision uint64
}

func (c *changing) Promised(t span.Instant) []reservation.Claim { return c.promises.Promised(t) }
func (c *changing) Revision() uint64                            { return c.revision }

func (c *changing) book(host string, start span.Instant) {
	c.promises, c.revision = append(slices.Clip(c.promises), reservation.Claim{Host: host, Span: span.New(start, 3600)}), c.revision+1
}

// drawPipeline draws which filters and weighers of all decide, with which multipliers, and whether instances
// can be evicted.
func drawPipeline(t *rapid.T, ports *changing) *scheduler.Pipeline {
	p := &scheduler.Pipeline{SubsetSize: rapid.IntRange(1, 3).Draw(t, "subset"), ShuffleBest: rapid.Bool().Draw(t, "shuffle"), Spares: rapid.Bool().Draw(t, "spares")}
	if rapid.IntRange(0, 2).Draw(t, "evictions") == 0 {
		p.Evictor = &preemption.Evictor{Cost: written{}}
	}
	var err error
	if p.Filters, err = filters.New(append(slices.Clone(filters.Enabled), "IoOpsFilter", "NumInstancesFilter"), filters.Options{
		Reservation:     filters.Reservation{Promises: ports, Fence: filters.FenceLeadTime, LeadTime: 3600},
		MaxIOOpsPerHost: rapid.Int64Range(2, 9).Draw(t, "most operations"), MaxInstancesPerHost: 5, Evicts: p.Evictor != nil,
	}); err != nil {
		t.Fatal(err)
	}
	multipliers := map[string]float64{}
	for _, option := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(weighers.Multipliers()))), 0, 6, rapid.ID).Draw(t, "options") {
		multipliers[option] = rapid.SampledFrom([]float64{-1, 0, 0.3, 1, 1e300}).Draw(t, option)
	}
	to := weighers.Ports{Promises: ports, Efficiencies: ports, Evictor: &preemption.Evictor{}, Period: written{}}
	for field, port := range reflect.ValueOf(to).Fields() {
		if field.Name != "Nova" && port.IsZero() {
			t.Fatalf("set %s in this test: a weigher without its port has nothing to rank by", field.Name)
		}
	}
	to.Evictor = p.Evictor
	if p.Weighers, err = weighers.Choose([]string{weighers.AllWeighers}, multipliers, to); err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "some weighers") {
		p.Weighers = rapid.SliceOfNDistinct(rapid.SampledFrom(p.Weighers), 0, 4, func(w weighers.Weighted) string { return w.Option }).Draw(t, "weighers")
	}
	return p
}

// drawCrowd draws a small cloud in which most instances fit on several hosts, and some of the others are
// preemptible.
func drawCrowd(t *rapid.T) []inventory.HostState {
	rows := rapid.Custom(drawRows).Filter(func(rows []inventory.HostState) bool { return len(rows) > 2 }).Draw(t, "rows")
	for i := range rows {
		rows[i].Up, rows[i].Enabled = true, true
		for class, stock := range rows[i].Stocks {
			stock.Total += 3
			rows[i].Stocks[class] = stock
		}
		for n := range rows[i].Instances {
			if one := &rows[i].Instances[n]; rapid.Bool().Draw(t, "preemptible") {
				held := rows[i].Stocks["VCPU"]
				held.Used++
				rows[i].Stocks["VCPU"] = held
				one.Preemptible, one.Status, one.Created, one.Holds = true, "ACTIVE", span.Instant(n), map[string]int64{"VCPU": 1}
			}
		}
	}
	return rows
}

// Other plans enter the live state, are undone and hosts are corrected, while a plan waits. A plan that is
// repaired after that is to the last bit, and with each reason, the plan that the pipeline makes of the same states.
func TestARepairedPlanIsTheOneMadeAgain(t *testing.T) {
	var repaired, elsewhere, again int
	rapid.Check(t, func(t *rapid.T) {
		rows := drawCrowd(t)
		states := statesOf(t, rows, inventory.Aggregate{UUID: "one", Metadata: map[string]string{"ram_weight_multiplier": rapid.SampledFrom([]string{"2", "none"}).Draw(t, "own multiplier")}, Hosts: []string{"h1", "h3"}})
		ports := &changing{efficiencies: efficiencyOf(t, states)}
		p := drawPipeline(t, ports)
		r := drawRequest(t, rows)
		r.ForceHosts = nil
		r.Preemptible = rapid.IntRange(0, 3).Draw(t, "preemptible") == 0
		if rapid.IntRange(0, 9).Draw(t, "instances") > 0 {
			r.Instances = r.Instances[:1]
		}
		if r.Group != nil {
			r.Group.Members = append(r.Group.Members, "other-0", "other-1", "other-2", "other-3")
		}
		board := inventory.NewLiveState()
		board.Replace(board.BeginRead(), states, nil)
		seed, chance := rapid.Uint64().Draw(t, "seed"), rand.New(rand.NewPCG(0, 0))
		draw := func(n int) int { return chance.IntN(n) }
		draft := p.Draft(board.Load(), r, 0, draw)
		for range rapid.IntRange(1, 3).Draw(t, "repairs") {
			before := slices.Clone(draft.Picks)
			drawChanges(t, board, rows, r, ports)
			s, now := board.Load(), span.Instant(rapid.IntRange(0, 19).Draw(t, "a second later")/19)
			chance = rand.New(rand.NewPCG(seed, 0))
			if !draft.Repair(s, now) {
				draft = p.Draft(s, r, 0, draw)
				if len(draft.Picks) == 1 && len(before) == 1 {
					again++
				}
				continue
			}
			repaired++
			chance = rand.New(rand.NewPCG(seed, 0))
			want := p.Draft(s, r, now, draw)
			if diff := cmp.Diff(want.Picks, draft.Picks); diff != "" {
				t.Fatal(diff)
			}
			if draft.Picks[0].Take.Host != before[0].Take.Host {
				elsewhere++
			}
			if rapid.Bool().Draw(t, "explained") {
				if diff := cmp.Diff(want.Explained(), draft.Explained()); diff != "" {
					t.Fatal(diff)
				}
				return
			}
			want.Drop()
		}
	})
	t.Logf("%d plans were repaired, %d of them to another host, and %d made again", repaired, elsewhere, again)
	if repaired < again/5 || elsewhere < repaired/20 {
		t.Error("too few were repaired, or changed by that")
	}
}

// drawChanges changes some hosts of the board, mostly where the request would go, and now and then what is
// promised.
func drawChanges(t *rapid.T, board *inventory.LiveState, rows []inventory.HostState, r *placing.Request, ports *changing) {
	var holds []*inventory.Hold
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		host := rapid.SampledFrom(rows).Draw(t, "host")
		switch what := rapid.IntRange(0, 20).Draw(t, "what"); {
		case what == 0:
			ports.book(host.Name, span.Instant(rapid.IntRange(0, 7200).Draw(t, "start")))
		case what == 1:
			ports.snapshot = otherEfficiencies(t, board.Load())
		case what < 5 && len(holds) > 0:
			holds[0].Undo()
			holds = holds[1:]
		case what < 8:
			stocks := map[string]inventory.Stock{}
			for class, stock := range host.Stocks {
				stock.Used = rapid.Int64Range(0, 3).Draw(t, "used")
				stocks[class] = stock
			}
			board.CorrectHost(board.BeginRead(), host.Name, stocks, nil)
		default:
			take := inventory.Take{Instance: fmt.Sprint("other-", rapid.IntRange(0, 9).Draw(t, "instance")), Resources: r.Resources}
			if here := host.Instances; len(here) > 0 && rapid.Bool().Draw(t, "evicts") {
				take.Victims = []string{here[0].ID}
			}
			holds = append(holds, board.AddClaims([]string{host.Name}, []inventory.Take{take}))
		}
	}
}

// otherEfficiencies returns a snapshot in which each host may be as efficient as it was, or not.
func otherEfficiencies(t *rapid.T, s *inventory.States) *inventory.Snapshot {
	hosts := make([]inventory.Host, s.Len())
	for i := range hosts {
		hosts[i] = inventory.Host{Name: s.Host(i).Name, FlopsPerWatt: float64(rapid.IntRange(0, 3).Draw(t, "efficiency")) * 1e9}
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// Hosts that need an eviction are ranked only when no other host has room, so they may come into a ranking
// although they have not changed.
func TestARepairedPlanEvictsWhereNoRoomIsLeft(t *testing.T) {
	hosts := map[string][]inventory.Instance{"a": nil, "b": nil, "c": {filler("c1", 30, 4, 4)}, "d": {filler("d1", 20, 4, 4)}}
	p, r, before := evicting("CPUWeigher"), wants(4, 4, "new"), filled(t, 4, 4, hosts, nil)
	draft := p.Draft(before, r, 0, nil)
	var takes []inventory.Take
	for host := range 2 {
		takes = append(takes, inventory.Take{Host: host, Instance: fmt.Sprint("other-", host), Resources: r.Resources})
	}
	after := before.WithTaken(takes)
	if !draft.Repair(after, 0) {
		t.Fatal("it is not repaired")
	}
	if diff := cmp.Diff(p.Plan(after, r, 0, nil), draft.Explained()); diff != "" {
		t.Error(diff)
	}
}

func TestADraftIsNotRepairedAfterAReading(t *testing.T) {
	p := pipelineOf(t)
	draft := p.Draft(statesOf(t, equalHosts(3)), requestFor(1, "a"), 0, nil)
	if draft.Repair(statesOf(t, equalHosts(3)), 0) {
		t.Error("it was repaired")
	}
}

func TestAnExplainedDraftIsNotRepaired(t *testing.T) {
	p, s := pipelineOf(t), statesOf(t, equalHosts(3))
	draft := p.Draft(s, requestFor(1, "a"), 0, nil)
	draft.Explained()
	if draft.Repair(s, 0) {
		t.Error("it was repaired")
	}
}
