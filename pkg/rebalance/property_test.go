// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// drawBoxes draws hosts of all kinds with their instances, and server groups of these.
func drawBoxes(t *rapid.T) (boxes []box, groups []placing.Group) {
	var ids []string
	for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
		b := box{name: fmt.Sprint("h", i), memory: rapid.Int64Range(1, 12).Draw(t, "memory"), flops: float64(rapid.IntRange(0, 3).Draw(t, "flops"))}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			b.disabled = true
		case 1:
			b.power = inventory.PowerSleeping
		case 2:
			b.promised = span.New(now+span.Instant(rapid.IntRange(-50, 50).Draw(t, "start")), 100)
		case 3:
			b.down = true
		}
		left := b.memory
		for n := range rapid.IntRange(0, 7).Draw(t, "guests") {
			one := server(fmt.Sprintf("%s-%d", b.name, n), rapid.Int64Range(1, 10).Draw(t, "vcpus"), rapid.Int64Range(1, 5).Draw(t, "needs memory"))
			if left -= one.Flavor.Resources.MemoryMB; left < 0 {
				break
			}
			one.Locked = rapid.IntRange(0, 5).Draw(t, "locked") == 0
			if rapid.IntRange(0, 7).Draw(t, "stopped") == 0 {
				one.Status = "SHUTOFF"
			}
			b.guests = append(b.guests, one)
			ids = append(ids, one.ID)
		}
		boxes = append(boxes, b)
	}
	for g := range rapid.IntRange(0, 2).Draw(t, "groups") {
		members := rapid.IntRange(0, len(ids)).Draw(t, "members")
		groups = append(groups, placing.Group{
			ID: fmt.Sprint("g", g), Policy: rapid.SampledFrom([]string{"affinity", "anti-affinity"}).Draw(t, "policy"), Members: ids[:members],
		})
		ids = ids[members:]
	}
	return boxes, groups
}

// follow makes the moves one after the other and fails if one violates a rule.
func follow(t *rapid.T, boxes []box, groups []placing.Group, list []rebalance.Move) []box {
	for n, m := range list {
		next := carried(boxes, list[n:n+1])
		for i, b := range next {
			used := int64(0)
			for _, g := range b.guests {
				used += g.Flavor.Resources.MemoryMB
			}
			if used > b.memory {
				t.Fatalf("after move %d there are %d of %d MB used on %s", n, used, b.memory, b.name)
			}
			if b.name != m.To {
				continue
			}
			if b.disabled || b.down || b.power != "" || !b.promised.Empty() && b.promised.End > now {
				t.Fatalf("move %d goes onto %+v", n, b)
			}
			for _, g := range groups {
				apart(t, g, m, boxes[i])
			}
		}
		for _, b := range boxes {
			for _, g := range b.guests {
				if g.ID == m.Instance && (g.Locked || g.Status != "ACTIVE" || b.name != m.From) {
					t.Fatalf("move %d moves %+v from %s", n, g, b.name)
				}
			}
		}
		boxes = next
	}
	return boxes
}

// apart fails if a move to a host, as it was before, violates a server group.
func apart(t *rapid.T, g placing.Group, m rebalance.Move, to box) {
	if !slices.Contains(g.Members, m.Instance) {
		return
	}
	there := slices.ContainsFunc(to.guests, func(i inventory.Instance) bool { return slices.Contains(g.Members, i.ID) })
	if g.Policy == "anti-affinity" && there || g.Policy == "affinity" && !there && len(g.Members) > 1 {
		t.Fatalf("%s goes to %s against its group %+v", m.Instance, to.name, g)
	}
}

func memoryOf(list []rebalance.Move) (sum int64) {
	for _, m := range list {
		sum += m.MemoryMB
	}
	return sum
}

func TestEveryStepOfAPlanIsPossibleAndItKeepsWhatItPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boxes, groups := drawBoxes(t)
		o := rebalance.Options{
			Migrations: rapid.IntRange(0, 5).Draw(t, "migrations"), MemoryMB: rapid.Int64Range(0, 12).Draw(t, "memory budget"),
			Algorithm: rapid.SampledFrom([]string{"", "adapt", "exact"}).Draw(t, "algorithm"),
		}
		s := situation(t, boxes, groups...)
		p, err := s.Plan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if o.Migrations > 0 && len(p.Moves) > o.Migrations || o.MemoryMB > 0 && memoryOf(p.Moves) > o.MemoryMB {
			t.Fatalf("%d moves of %d MB are more than %+v", len(p.Moves), memoryOf(p.Moves), o)
		}
		after := follow(t, boxes, groups, p.Moves)
		again := situation(t, after, groups...)
		if got := yieldOf(t, again, p); p.After > p.Bound+1e-9 || len(p.Moves) > 0 && (p.After <= p.Before || !near(got, p.After)) {
			t.Fatalf("%v promises %v, before %v, bound %v, and reaches %v", moves(p), p.After, p.Before, p.Bound, got)
		}
		if n := len(p.Moves); n > 0 && !near(p.Moves[n-1].Yield, p.After) {
			t.Fatalf("the last move reports %v, the plan %v", p.Moves[n-1].Yield, p.After)
		}
		if len(p.Moves) == 0 && (p.After != p.Before || len(p.Reasons) == 0) {
			t.Fatalf("nothing is moved, and the yield goes from %v to %v for %q", p.Before, p.After, p.Reasons)
		}
		same, err := s.Plan(t.Context(), o)
		if d := cmp.Diff(p, same); err != nil || d != "" {
			t.Fatalf("another time (-want +got):\n%s%v", d, err)
		}
		if len(p.Moves) > 0 {
			if v := s.Judge(&p, 0, p.Before); v != (rebalance.Verdict{}) {
				t.Fatalf("its first move is judged %+v", v)
			}
		}
	})
}

// yieldOf returns the smallest yield by its definition, without the hosts that the plan leaves
// out.
func yieldOf(t *rapid.T, s *rebalance.Situation, p rebalance.Plan) float64 {
	least := 1.0
	for i := range s.States.Len() {
		h := s.States.Host(i)
		need := 0.0
		for _, one := range h.Instances {
			if one.Status == "ACTIVE" {
				need += min(float64(one.Flavor.Resources.VCPUs), boxCores)
			}
		}
		leftOut := slices.ContainsFunc(p.Excluded, func(b rebalance.Excluded) bool { return b.Host == h.Name })
		if need > boxCores && h.Up && h.Enabled && !leftOut {
			least = min(least, boxCores/need)
		}
	}
	return least
}

func TestHostsAreEmptiedWithoutHarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boxes, groups := drawBoxes(t)
		o := rebalance.Options{
			Consolidate: rapid.SampledFrom([]int{1, 2, rebalance.AllThatCan}).Draw(t, "consolidate"), Migrations: rapid.IntRange(0, 8).Draw(t, "migrations"),
			Floor: rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "floor"),
		}
		p, err := situation(t, boxes, groups...).Plan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if o.Migrations > 0 && len(p.Moves) > o.Migrations || len(p.Emptied) > o.Consolidate {
			t.Fatalf("%v by %v are more than %+v", p.Emptied, moves(p), o)
		}
		after := follow(t, boxes, groups, p.Moves)
		floor := o.Floor
		if floor == 0 {
			floor = p.Before
		}
		if got := yieldOf(t, situation(t, after, groups...), p); !near(got, p.After) || len(p.Moves) > 0 && p.After < floor-1e-9 {
			t.Fatalf("%v promises %v over %v, and reaches %v", moves(p), p.After, floor, got)
		}
		for i, b := range after {
			emptied := slices.Contains(p.Emptied, b.name)
			if emptied != (len(boxes[i].guests) > 0 && len(b.guests) == 0) || len(boxes[i].guests) == 0 && len(b.guests) > 0 {
				t.Fatalf("the plan empties %v by %v: %s had %d and has %d guests", p.Emptied, moves(p), b.name, len(boxes[i].guests), len(b.guests))
			}
		}
	})
}

func TestTheExactPlanIsNoWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boxes, _ := drawBoxes(t)
		if len(boxes) > 4 {
			boxes = boxes[:4]
		}
		s, o := situation(t, boxes), rebalance.Options{Migrations: rapid.IntRange(1, 4).Draw(t, "migrations")}
		after := map[string]float64{}
		for _, algorithm := range rebalance.Algorithms {
			o.Algorithm = algorithm
			p, err := s.Plan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			after[algorithm] = p.After
		}
		// The exact algorithm plans again if its moves have no possible order, so the other one
		// is sometimes slightly better.
		if after["exact"] < after["adapt"]-0.15 {
			t.Fatalf("exactly %v, adapted %v", after["exact"], after["adapt"])
		}
	})
}
