// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// crowd returns n instances of 4 vCPUs and 1 GiB.
func crowd(prefix string, n int) (list []inventory.Instance) {
	for i := range n {
		list = append(list, server(prefix+string(rune('a'+i)), 4, 1024))
	}
	return list
}

func TestAPlanRaisesTheSmallestYieldWithinItsBudget(t *testing.T) {
	boxes := []box{{name: "h1", memory: 16384, guests: crowd("i", 8)}, {name: "h2", memory: 16384}, {name: "h3", memory: 16384}}
	for _, tc := range []struct {
		name  string
		o     rebalance.Options
		moves int
		after float64
	}{
		{"one migration", rebalance.Options{Migrations: 1}, 1, 8.0 / 28},
		{"three", rebalance.Options{Migrations: 3}, 3, 8.0 / 20},
		{"any number", rebalance.Options{}, 5, 8.0 / 12},
		{"two GiB", rebalance.Options{MemoryMB: 2048}, 2, 8.0 / 24},
		{"both bounds", rebalance.Options{Migrations: 4, MemoryMB: 1024}, 1, 8.0 / 28},
		{"exactly", rebalance.Options{Migrations: 3, Algorithm: "exact"}, 3, 8.0 / 20},
		{"adapted", rebalance.Options{Migrations: 3, Algorithm: "adapt"}, 3, 8.0 / 20},
	} {
		p := plan(t, situation(t, boxes), tc.o)
		if len(p.Moves) != tc.moves || !near(p.After, tc.after) || !near(p.Before, 0.25) || !near(p.Bound, 0.75) {
			t.Errorf("%s: %d moves, %v after %v under %v; want %d moves, %v", tc.name, len(p.Moves), p.After, p.Before, p.Bound, tc.moves, tc.after)
		}
		if got := minYield(carried(boxes, p.Moves)); !near(got, p.After) {
			t.Errorf("%s: the plan promises %v and reaches %v", tc.name, p.After, got)
		}
	}
}

func TestThereIsNoPlanWhereNothingHelps(t *testing.T) {
	locked := crowd("i", 4)
	for n := range locked {
		locked[n].Locked = true
	}
	for name, boxes := range map[string][]box{
		"everybody has enough": {{name: "h1", memory: 4096, guests: crowd("i", 2)}, {name: "h2", memory: 4096}},
		"balanced":             {{name: "h1", memory: 4096, guests: crowd("i", 3)}, {name: "h2", memory: 4096, guests: crowd("j", 3)}},
		"nobody moves":         {{name: "h1", memory: 4096, guests: locked}, {name: "h2", memory: 4096}},
		"no memory elsewhere":  {{name: "h1", memory: 4096, guests: crowd("i", 4)}, {name: "h2", memory: 512}},
		"no host":              nil,
		"no instance":          {{name: "h1", memory: 4096}},
	} {
		p := plan(t, situation(t, boxes), rebalance.Options{})
		if len(p.Moves) != 0 || p.After != p.Before || len(p.Reasons) == 0 {
			t.Errorf("%s: %v, %v after %v, %q", name, moves(p), p.After, p.Before, p.Reasons)
		}
	}
	boxes := []box{{name: "h1", memory: 16384, guests: crowd("i", 8)}, {name: "h2", memory: 16384}}
	if p := plan(t, situation(t, boxes), rebalance.Options{Migrations: 1, Gain: 0.1}); len(p.Moves) != 0 {
		t.Errorf("for less than the requested gain: %v", moves(p))
	}
}

func TestNothingIsMovedOntoAHostThatIsClosed(t *testing.T) {
	crowded := box{name: "h1", memory: 16384, guests: crowd("i", 6)}
	for name, target := range map[string]box{
		"disabled":          {disabled: true},
		"down":              {down: true},
		"asleep":            {power: inventory.PowerSleeping},
		"waking":            {power: inventory.PowerWaking},
		"failed":            {power: inventory.PowerFailed},
		"reserved":          {promised: span.New(now-10, 100)},
		"reserved later":    {promised: span.New(now+1000, 100)},
		"of another zone":   {zone: "east"},
		"without the trait": {},
	} {
		target.name, target.memory = "h2", 16384
		from := crowded
		if name == "of another zone" {
			from.zone = "west"
		}
		if name == "without the trait" {
			from.guests = slices.Clone(from.guests)
			from.traits = []string{"CUSTOM_FAST"}
			for n := range from.guests {
				from.guests[n].Flavor.ExtraSpecs = map[string]string{"trait:CUSTOM_FAST": "required"}
			}
		}
		if p := plan(t, situation(t, []box{from, target}), rebalance.Options{}); len(p.Moves) != 0 {
			t.Errorf("%s: %v", name, moves(p))
		}
	}
	s := situation(t, []box{crowded, {name: "h2", memory: 16384}})
	s.Closed["h2"] = "it will be switched off"
	if p := plan(t, s, rebalance.Options{}); len(p.Moves) != 0 {
		t.Errorf("about to sleep: %v", moves(p))
	}
	delete(s.Closed, "h2")
	if p := plan(t, s, rebalance.Options{}); len(p.Moves) == 0 {
		t.Error("nothing is moved onto one that is open")
	}
}

// filled are the promises of boxes; preemptible instances may fill h2.
type filled struct{ promises }

func (f filled) Fillable(span.Instant, int64) map[string]bool { return map[string]bool{"h2": true} }

func TestPreemptibleInstancesAreNotMovedToWhereTheyWouldHaveToMakeRoom(t *testing.T) {
	guests := crowd("i", 8)
	for n := range guests {
		guests[n].Preemptible = true
	}
	for name, tc := range map[string]struct {
		promised span.Span
		fence    filters.Fence
		moves    bool
	}{
		"reserved now":            {span.New(now-100, 10000), filters.FenceAlways, false},
		"reserved ahead":          {span.New(now+9000, 10000), filters.FenceAlways, false},
		"within the lead time":    {span.New(now+500, 10000), filters.FenceLeadTime, false},
		"before the lead time":    {span.New(now+9000, 10000), filters.FenceLeadTime, true},
		"when they have to leave": {span.New(now+1500, 10000), filters.FenceLeadTime, false},
		"no longer":               {span.New(now-200, 100), filters.FenceAlways, true},
	} {
		boxes := []box{{name: "h1", memory: 16384, guests: guests}, {name: "h2", memory: 16384, promised: tc.promised}}
		list, err := filters.New(filters.Enabled, filters.Options{Reservation: filters.Reservation{
			Promises: filled{promises(boxes)}, Fence: tc.fence, LeadTime: 1000, Eviction: 2000, Fill: name != "when they have to leave",
		}})
		if err != nil {
			t.Fatal(err)
		}
		s := situation(t, boxes)
		s.Filters = list
		if p := plan(t, s, rebalance.Options{}); len(p.Moves) > 0 != tc.moves {
			t.Errorf("%s: %v", name, moves(p))
		}
	}
}

func TestAPlanOfASearchThatWasGivenUpSaysSo(t *testing.T) {
	draw := rand.New(rand.NewSource(3))
	var boxes []box
	for h := range 12 {
		b := box{name: fmt.Sprintf("h%02d", h), memory: 20000}
		for g := range 10 {
			b.guests = append(b.guests, server(fmt.Sprintf("%s-%d", b.name, g), int64(1+draw.Intn(8)), int64(500+draw.Intn(1500))))
		}
		boxes = append(boxes, b)
	}
	s := situation(t, boxes)
	for _, algorithm := range rebalance.Algorithms {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		p, err := s.Plan(ctx, rebalance.Options{Algorithm: algorithm, Migrations: 6})
		if err != nil || !slices.Contains(p.Reasons, "the time limit of the search was reached: there may be a better plan") {
			t.Errorf("%s: the reasons are %q, %v", algorithm, p.Reasons, err)
		}
	}
}

func TestWhoCannotBeMovedStays(t *testing.T) {
	for name, change := range map[string]func(*inventory.Instance){
		"locked":          func(i *inventory.Instance) { i.Locked = true },
		"busy":            func(i *inventory.Instance) { i.Task = "rebooting" },
		"stopped":         func(i *inventory.Instance) { i.Status = "SHUTOFF" },
		"reserved":        func(i *inventory.Instance) { i.Reservation = "r" },
		"told to go":      func(i *inventory.Instance) { i.Metadata = map[string]string{"told": "soon"} },
		"pinned":          func(i *inventory.Instance) { i.Flavor.ExtraSpecs = map[string]string{"hw:cpu_policy": "dedicated"} },
		"with a topology": func(i *inventory.Instance) { i.Flavor.ExtraSpecs = map[string]string{"hw:numa_nodes": "2"} },
		"with a device":   func(i *inventory.Instance) { i.Flavor.ExtraSpecs = map[string]string{"pci_passthrough:alias": "gpu:1"} },
	} {
		guests := crowd("i", 6)
		for n := range guests[:5] {
			change(&guests[n])
		}
		p := plan(t, situation(t, []box{{name: "h1", memory: 16384, guests: guests}, {name: "h2", memory: 16384}}), rebalance.Options{})
		if len(p.Stays) != 5 || p.Stays[0].Reason == "" || p.Movable != 1 || slices.ContainsFunc(p.Moves, func(m rebalance.Move) bool { return m.Instance != "if" }) {
			t.Errorf("%s: %v stay, %v", name, p.Stays, moves(p))
		}
	}
	s := situation(t, []box{{name: "h1", memory: 16384, guests: crowd("i", 3)}, {name: "h2", memory: 16384}})
	s.Kept = map[string]string{"ia": "planned", "ib": "planned", "ic": "planned"}
	if p := plan(t, s, rebalance.Options{}); len(p.Stays) != 3 || len(p.Moves) != 0 {
		t.Errorf("kept for another reason: %v stay, %v", p.Stays, moves(p))
	}
}

func TestServerGroupsAreKept(t *testing.T) {
	boxes := []box{
		{name: "h1", memory: 16384, guests: crowd("i", 6)}, {name: "h2", memory: 16384, guests: []inventory.Instance{server("x", 1, 512)}}, {name: "h3", memory: 16384},
	}
	all := []string{"ia", "ib", "ic", "id", "ie", "if"}
	together := placing.Group{ID: "g", Policy: "affinity", Members: all}
	if p := plan(t, situation(t, boxes, together), rebalance.Options{}); len(p.Moves) != 0 || len(p.Stays) != 6 {
		t.Errorf("together: %v", moves(p))
	}
	apart := placing.Group{ID: "g", Policy: "anti-affinity", Members: append(slices.Clone(all), "x")}
	p := plan(t, situation(t, boxes, apart), rebalance.Options{})
	if len(p.Moves) != 1 || p.Moves[0].To != "h3" {
		t.Errorf("apart: %v; want one, to the only host without a member", moves(p))
	}
	apart.MaxPerHost = 2
	p = plan(t, situation(t, boxes, apart), rebalance.Options{})
	on := map[string]int{"h2": 1}
	for _, m := range p.Moves {
		if on[m.To]++; on[m.To] > 2 {
			t.Errorf("two on each: %v", moves(p))
		}
	}
	if len(p.Moves) != 3 {
		t.Errorf("two on each: %v; want three", moves(p))
	}
}

// Two hosts are full, and each has the room that the other needs: one instance must first move
// elsewhere.
func TestWhoeverIsInTheWayStepsAside(t *testing.T) {
	boxes := []box{
		{name: "h1", memory: 2048, guests: []inventory.Instance{server("big", 8, 1024), server("bigger", 8, 1024)}},
		{name: "h2", memory: 2048, guests: []inventory.Instance{server("small", 1, 1024), server("smaller", 1, 1024)}},
		{name: "h3", memory: 1024, promised: span.Span{}},
	}
	p := plan(t, situation(t, boxes), rebalance.Options{Migrations: 3, Algorithm: "exact"})
	if got := minYield(carried(boxes, p.Moves)); !near(got, p.After) || !near(p.After, 1) && !near(p.After, 8.0/9) {
		t.Errorf("%v: the plan promises %v and reaches %v", moves(p), p.After, got)
	}
	boxes[2].guests = []inventory.Instance{server("third", 8, 512)}
	boxes[2].memory = 1536
	p = plan(t, situation(t, boxes), rebalance.Options{})
	if got := minYield(carried(boxes, p.Moves)); !near(got, p.After) || p.After <= p.Before {
		t.Errorf("%v: the plan promises %v and reaches %v, before %v", moves(p), p.After, got, p.Before)
	}
}

// The smallest yield is on a host that no move can change: the plan still helps the others.
func TestAHostThatCannotBeHelpedIsLeftOut(t *testing.T) {
	pinned := crowd("p", 8)
	for n := range pinned {
		pinned[n].Locked = true
	}
	boxes := []box{{name: "h1", memory: 16384, guests: pinned}, {name: "h2", memory: 16384, guests: crowd("i", 4)}, {name: "h3", memory: 16384}}
	p := plan(t, situation(t, boxes), rebalance.Options{})
	if len(p.Excluded) != 1 || p.Excluded[0].Host != "h1" || !near(p.Excluded[0].Yield, 0.25) || p.Excluded[0].Reason == "" {
		t.Errorf("left out are %+v", p.Excluded)
	}
	if !near(p.Before, 0.5) || !near(p.After, 1) || len(p.Moves) != 2 {
		t.Errorf("%v after %v by %v", p.After, p.Before, moves(p))
	}
}

func TestMeasuredUseCountsBeforeTheFlavor(t *testing.T) {
	s := situation(t, []box{{name: "h1", memory: 16384, guests: crowd("i", 4)}, {name: "h2", memory: 16384}})
	s.Use = map[string]float64{"ia": 0.5, "ib": 0.5, "ic": 0.5}
	p := plan(t, s, rebalance.Options{})
	if p.Before != 1 || p.Measured != 3 || len(p.Moves) != 0 {
		t.Errorf("%v, %d measured, %v", p.Before, p.Measured, moves(p))
	}
	s.Use, s.Share = nil, 0.5
	if p := plan(t, s, rebalance.Options{}); p.Before != 1 || p.Measured != 0 {
		t.Errorf("of half of the vCPUs: %v", p.Before)
	}
}

func TestTheLeastEfficientHostsAreEmptiedFirst(t *testing.T) {
	boxes := []box{
		{name: "good", memory: 8192, flops: 9, guests: crowd("a", 1)},
		{name: "bad", memory: 8192, flops: 1, guests: crowd("b", 1)},
		{name: "worse", memory: 8192, guests: crowd("c", 1)}, // unknown efficiency
		{name: "empty", memory: 8192, flops: 5},
	}
	p := plan(t, situation(t, boxes), rebalance.Options{Consolidate: 1})
	if !slices.Equal(p.Emptied, []string{"worse"}) || len(p.Moves) != 1 || p.After != 1 || p.Moves[0].To == "empty" {
		t.Errorf("one: %v by %v, yield %v", p.Emptied, moves(p), p.After)
	}
	p = plan(t, situation(t, boxes), rebalance.Options{Consolidate: rebalance.AllThatCan})
	if !slices.Equal(p.Emptied, []string{"worse"}) || len(p.Kept) != 2 {
		t.Errorf("all that can with everybody served: %v, %v", p.Emptied, p.Kept)
	}
	p = plan(t, situation(t, boxes), rebalance.Options{Consolidate: rebalance.AllThatCan, Floor: 0.6})
	if !slices.Equal(p.Emptied, []string{"worse", "bad"}) || !near(p.After, 8.0/12) || slices.ContainsFunc(p.Moves, func(m rebalance.Move) bool { return m.To != "good" }) {
		t.Errorf("down to a floor: %v by %v, yield %v", p.Emptied, moves(p), p.After)
	}
	p = plan(t, situation(t, boxes), rebalance.Options{Consolidate: 2, Floor: 0.6, Migrations: 1})
	if len(p.Moves) != 1 || len(p.Emptied) != 1 {
		t.Errorf("within one migration: %v by %v", p.Emptied, moves(p))
	}
	boxes[2].guests[0].Locked = true
	boxes[1].promised = span.New(now+1000, 10)
	if p = plan(t, situation(t, boxes), rebalance.Options{Consolidate: 3}); len(p.Kept) < 2 || slices.Contains(p.Emptied, "worse") || slices.Contains(p.Emptied, "bad") {
		t.Errorf("with one that is locked, and one reserved: %v, kept %v", p.Emptied, p.Kept)
	}
}

func TestOptionsThatMakeNoSenseAreRefusedByField(t *testing.T) {
	s := situation(t, []box{{name: "h1", memory: 1024}})
	for field, o := range map[string]rebalance.Options{
		"migrations": {Migrations: -1}, "memory_mb": {MemoryMB: -1}, "consolidate": {Consolidate: -1}, "algorithm": {Algorithm: "magic"},
		"floor": {Floor: 0.5}, "gain": {Gain: math.NaN()},
	} {
		if _, err := s.Plan(t.Context(), o); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestTheYieldFilterIsAskedToo(t *testing.T) {
	boxes := []box{{name: "h1", memory: 16384, guests: crowd("i", 6)}, {name: "h2", memory: 16384}}
	s := situation(t, boxes)
	s.Filters = append(s.Filters, &filters.Yield{Floor: 1, Share: 1})
	if p := plan(t, s, rebalance.Options{}); len(p.Moves) != 2 {
		t.Errorf("%v; want no more than 8 vCPUs on h2", moves(p))
	}
}
