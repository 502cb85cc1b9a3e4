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

// The sets of instances. Scaled and drawn are the two ways in which the memory is generated.
const (
	smallScaled    = "small, scaled"
	smallDrawn     = "small, drawn"
	largeScaled    = "large, scaled"
	largeDrawn     = "large, drawn"
	parallelScaled = "parallel, scaled"
)

// set is a set of instances and the algorithms that run on it.
type set struct {
	name       string
	specs      []Spec
	instances  int // of each specification
	algorithms []string
}

// exact is the name of the exact solver, bound the name of the bound in lists of algorithms.
const (
	exact = "exact"
	bound = "bound"
)

var (
	mcbs       = []string{"mcb1", "mcb2", "mcb3", "mcb4", "mcb5", "mcb6", "mcb7", "mcb8"}
	greedies   = []string{"gr", "sg", "gb", "sgb"}
	descending = []string{"mcb8", "mcb5", "mcb6", "mcb7"} // the best first, as in Tables 1 and 2
	ascending  = []string{"mcb3", "mcb2", "mcb1", "mcb4"}
	roundings  = []string{"rrnd", "rrnz"}
)

// sets returns the sets that the options select.
func (o Options) sets() []set {
	heuristics := slices.Concat(mcbs, greedies)
	withExact := append(slices.Clone(heuristics), exact)
	withRounding := withExact
	if o.Solver != nil {
		withRounding = slices.Concat(withExact, roundings)
	}
	all := []set{
		{smallScaled, small(Spec{Scaled: true}), o.Small, withRounding},
		{smallDrawn, small(Spec{}), o.Small, withExact},
		{largeScaled, large(Spec{Scaled: true}), o.Large, heuristics},
		{largeDrawn, large(Spec{}), o.Large, mcbs},
		{parallelScaled, large(Spec{Scaled: true, Parallel: true}), o.Parallel, []string{"mcb8", "sg"}},
	}
	return slices.DeleteFunc(all, func(s set) bool { return s.instances == 0 })
}

// trial is an instance and the outcomes of the algorithms on it.
type trial struct {
	Spec
	bound    float64
	outcomes map[string]outcome // by algorithm
}

// outcome is the result of an algorithm on an instance. infeasible is true if the algorithm has
// proven that there is no placement, unproven if a better placement may exist.
type outcome struct {
	solved, infeasible, unproven bool
	yield, average               float64
	seconds                      float64
}

// run runs the algorithms on all instances; the results are by set. All algorithms of a set run on
// the same instances, which depend only on the seed.
func (o Options) run(ctx context.Context, sets []set, progress sim.Progress) (map[string][]trial, error) {
	type batch struct {
		set
		spec int
	}
	var batches []batch
	for _, s := range sets {
		for i := range s.specs {
			batches = append(batches, batch{s, i})
		}
	}
	all, err := sim.Runs(ctx, len(batches), progress, func(ctx context.Context, i int) ([]trial, error) {
		b := batches[i]
		var trials []trial
		for n := range b.instances {
			t, err := o.try(ctx, b.set, b.spec, n)
			if err != nil {
				return nil, fmt.Errorf("instance %d of %+v: %w", n, b.specs[b.spec], err)
			}
			trials = append(trials, t)
		}
		return trials, nil
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]trial{}
	for i, b := range batches {
		found[b.name] = append(found[b.name], all[i]...)
	}
	return found, nil
}

// try runs the algorithms of the set on the n-th instance of a specification.
func (o Options) try(ctx context.Context, s set, spec, n int) (trial, error) {
	p := s.specs[spec].Instance(sim.Chance(o.Seed, "instance", s.name, spec, n))
	t := trial{Spec: s.specs[spec], bound: p.Bound(), outcomes: map[string]outcome{}}
	for _, name := range s.algorithms {
		tools := packing.Tools{Chance: sim.Chance(o.Seed, "rounding", s.name, spec, n)}
		if slices.Contains(roundings, name) {
			tools.Solver = o.Solver
		}
		one, err := o.time(ctx, p, tools, name)
		if err != nil {
			return trial{}, fmt.Errorf("%s: %w", name, err)
		}
		t.outcomes[name] = one
	}
	return t, nil
}

// Short run times are measured several times, and the least counts, since others use the machine
// too.
const (
	repeats = 3
	short   = 0.005 // seconds
)

// time runs an algorithm. As in the paper, its time excludes the second phase.
func (o Options) time(ctx context.Context, p *packing.Problem, tools packing.Tools, name string) (outcome, error) {
	algorithm, err := tools.Named(name)
	if err != nil {
		return outcome{}, err
	}
	one := outcome{}
	timed := func(ctx context.Context, p *packing.Problem) (packing.Placement, error) {
		if !o.Timings {
			return algorithm(ctx, p)
		}
		began := o.Clock()
		at, err := algorithm(ctx, p)
		one.seconds = o.Clock().Sub(began).Seconds()
		for n := 1; n < repeats && one.seconds < short; n++ {
			began = o.Clock()
			_, _ = algorithm(ctx, p) // the same result again
			one.seconds = min(one.seconds, o.Clock().Sub(began).Seconds())
		}
		return at, err
	}
	found, err := packing.Tools{}.Solve(ctx, p, timed)
	if infeasible, is := errors.AsType[*packing.Infeasible](err); is {
		one.infeasible = infeasible.Proven
		return one, nil
	} else if err != nil {
		return outcome{}, err
	}
	one.solved, one.unproven, one.yield, one.average = true, found.Unproven != "", found.MinYield, found.Average
	return one, nil
}
