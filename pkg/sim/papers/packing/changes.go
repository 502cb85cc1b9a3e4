// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// budgets bound how much may be moved, as shares of the memory of all tasks that are present.
var budgets = []float64{0, 0.05, 0.1, 0.2, 0.3, 0.5, 1}

// change is a changed workload and the smallest yields after its adaptation, one for each budget.
type change struct {
	bound  float64
	adapt  []float64
	exact  []float64
	moved  []float64 // by adapt, as a share of the memory of present tasks
	proven []bool    // whether exact is proven optimal
}

// changed draws a placement of ten tasks on four hosts by MCB8, and then changes it: all needs of
// CPU are drawn again, and two new tasks replace two old ones.
func (o Options) changed(ctx context.Context, n int) (*packing.Problem, error) {
	chance := sim.Chance(o.Seed, "change", n)
	spec := Spec{Hosts: 4, Tasks: 10, Slack: 0.3, CPUSpread: 0.5, MemorySpread: 0.5, Scaled: true}
	for {
		p, other := spec.Instance(chance), spec.Instance(chance)
		at, err := packing.MCBs[7].Place(ctx, p)
		if _, is := errors.AsType[*packing.Infeasible](err); is {
			continue // there is no initial placement
		} else if err != nil {
			return nil, err
		}
		for i := range p.Jobs {
			p.Jobs[i].CPU = other.Jobs[i].CPU
			if i >= 8 {
				p.Jobs[i].Memory, at[i] = other.Jobs[i].Memory, nil
			}
		}
		p.Current = at
		if _, err := (packing.Adapt{}).Place(ctx, p); err == nil { // moving nothing is possible
			return p, nil
		}
	}
}

// adapt adapts a changed workload with each budget.
func (o Options) adapt(ctx context.Context, n int) (change, error) {
	p, err := o.changed(ctx, n)
	if err != nil {
		return change{}, err
	}
	there := 0.0
	for i, j := range p.Jobs {
		if p.Current[i] != nil {
			there += j.Memory
		}
	}
	c := change{bound: p.Bound()}
	for _, share := range budgets {
		p.Budget = share * there
		at, err := packing.Adapt{}.Place(ctx, p)
		if err != nil {
			return change{}, fmt.Errorf("adapt: %w", err)
		}
		best, err := packing.Exact{}.Place(ctx, p)
		_, unproven := errors.AsType[*packing.Unproven](err)
		if err != nil && !unproven {
			return change{}, fmt.Errorf("exact: %w", err)
		}
		c.adapt = append(c.adapt, p.MinYield(at))
		c.exact = append(c.exact, p.MinYield(best))
		c.moved = append(c.moved, p.Moved(at)/there)
		c.proven = append(c.proven, !unproven)
	}
	return c, nil
}

// adaptAll adapts Changes changed workloads.
func (o Options) adaptAll(ctx context.Context) ([]change, error) {
	return sim.Runs(ctx, o.Changes, nil, o.adapt)
}

// distance is by how many percent the yield of the heuristic adaptation is below the exact one, for
// one budget.
type distance struct {
	adapt, exact, bound, moved float64 // means
	mean, most                 float64
	equal                      int
}

func distanceOf(changes []change, budget int) distance {
	var d distance
	for _, c := range changes {
		d.adapt += c.adapt[budget]
		d.exact += c.exact[budget]
		d.bound += c.bound
		d.moved += c.moved[budget]
		lost := max(0, 100*(c.exact[budget]-c.adapt[budget])/c.exact[budget])
		d.mean += lost
		d.most = max(d.most, lost)
		if lost < 1e-6 {
			d.equal++
		}
	}
	for _, sum := range []*float64{&d.adapt, &d.exact, &d.bound, &d.moved, &d.mean} {
		*sum /= float64(len(changes))
	}
	return d
}

// proven reports whether the exact solution is proven optimal for all changes.
func proven(changes []change) bool {
	return !slices.ContainsFunc(changes, func(c change) bool { return slices.Contains(c.proven, false) })
}
