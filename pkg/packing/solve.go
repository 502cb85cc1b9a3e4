// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Tools are what some algorithms need in addition to the problem.
type Tools struct {
	// Solver is required for RRND and RRNZ. It also continues when the search of Exact ends early,
	// and finds the largest average yield of parallel jobs. It is nil if there is none; Missing may
	// then contain the reason.
	Solver  Solver
	Missing error
	Chance  Chance        // random numbers for RRND and RRNZ
	Work    int           // limit of Exact's search, see Exact.Work
	Limit   time.Duration // limit of Exact's search, see Exact.Limit; then the Solver continues
}

// Names returns the names of the algorithms for users.
func Names() []string {
	var names []string
	for _, m := range MCBs {
		names = append(names, m.Name)
	}
	for _, g := range Greedies {
		names = append(names, g.Name)
	}
	for _, r := range Roundings(nil, nil) {
		names = append(names, r.Name)
	}
	return append(names, "exact", "adapt")
}

// Named returns the algorithm with a name. The error is an Invalid fault for an unknown name, and
// Missing if the algorithm requires a solver and there is none.
func (t Tools) Named(name string) (Algorithm, error) {
	for _, m := range MCBs {
		if m.Name == name {
			return m.Place, nil
		}
	}
	for _, g := range Greedies {
		if g.Name == name {
			return g.Place, nil
		}
	}
	for _, r := range Roundings(t.Solver, t.Chance) {
		if r.Name == name {
			if t.Solver == nil {
				return nil, fmt.Errorf("%s solves a linear program: %w", name, cmp.Or(t.Missing, errors.New("no solver is configured")))
			}
			return r.Place, nil
		}
	}
	switch name {
	case "exact":
		return t.exact, nil
	case "adapt":
		return Adapt{}.Place, nil
	}
	return nil, fault.Field("algorithm", "%s", fault.Unknown("algorithm", name, Names()))
}

// exact uses the solver if branch and bound ends early, and returns the better of both results.
func (t Tools) exact(ctx context.Context, p *Problem) (Placement, error) {
	found, err := Exact{Work: t.Work, Limit: t.Limit}.Place(ctx, p)
	if !gaveUp(err) || t.Solver == nil || p.sized() != nil {
		return found, err
	}
	other, otherErr := Program{t.Solver}.Place(ctx, p)
	switch {
	case otherErr == nil || found == nil:
		return other, otherErr
	case other != nil && p.MinYield(other) > p.MinYield(found):
		return other, otherErr
	}
	return found, err
}

// gaveUp reports whether a search ended before it was complete.
func gaveUp(err error) bool {
	if _, is := errors.AsType[*Unproven](err); is {
		return true
	}
	infeasible, is := errors.AsType[*Infeasible](err)
	return is && !infeasible.Proven
}

// Outcome is a placement and the yields of its jobs.
type Outcome struct {
	Placement Placement
	// MinYield is the largest smallest yield that the placement allows, Average the average yield
	// of the jobs after the second phase.
	MinYield, Average float64
	Yields            []float64 // by job
	// ByProgram is true if the second phase was solved as a linear program. Otherwise, also if the
	// solver failed, Raise did it.
	ByProgram bool
	// Unproven is the reason why a better placement than that of Exact may exist; empty if none
	// exists, and for other algorithms.
	Unproven string
}

// Solve places the jobs and shares the hosts among them. The error is an *Infeasible if the
// algorithm found no placement.
func (t Tools) Solve(ctx context.Context, p *Problem, algorithm Algorithm) (Outcome, error) {
	at, err := algorithm(ctx, p)
	o := Outcome{Placement: at}
	if unproven, is := errors.AsType[*Unproven](err); is {
		o.Unproven = unproven.Error()
	} else if err != nil {
		return Outcome{}, err
	}
	o.MinYield = p.MinYield(at)
	o.Yields = p.Raise(at, o.MinYield)
	if t.Solver != nil && !p.sequential() {
		if yields, err := p.RaiseExactly(ctx, t.Solver, at, o.MinYield); err == nil {
			o.Yields, o.ByProgram = yields, true
		} else if ctx.Err() != nil {
			return Outcome{}, err
		}
	}
	o.Average = Mean(o.Yields)
	return o, nil
}
