package packing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Tools are what some algorithms need beside the problem.
type Tools struct {
	// Solver is needed for RRND and RRNZ, helps Exact where it gives up, and finds the largest
	// average yield of parallel jobs; nil is none, and Missing may say why.
	Solver  Solver
	Missing error
	Chance  Chance // of RRND and RRNZ
	Work    int    // of Exact
	// Limit is how long Exact may search by itself, before it asks the Solver; 0 is for as long
	// as its Work takes.
	Limit time.Duration
}

// Names are the algorithms, as users name them.
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

// Named gives an algorithm by its name.
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
				return nil, fmt.Errorf("%s solves a linear program: %w", name, cmp.Or(t.Missing, errors.New("there is no solver")))
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

// exact asks the solver where branch and bound gives up, and keeps the better of both.
func (t Tools) exact(ctx context.Context, p *Problem) (Placement, error) {
	found, err := t.search(ctx, p)
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

// search is Exact without the solver.
func (t Tools) search(ctx context.Context, p *Problem) (Placement, error) {
	if t.Limit > 0 {
		limited, stop := context.WithTimeout(ctx, t.Limit)
		defer stop()
		ctx = limited
	}
	return Exact{Work: t.Work}.Place(ctx, p)
}

// gaveUp says that a search ended before it was through.
func gaveUp(err error) bool {
	if _, is := errors.AsType[*Unproven](err); is {
		return true
	}
	infeasible, is := errors.AsType[*Infeasible](err)
	return is && !infeasible.Proven
}

// Outcome is a placement with what everybody gets.
type Outcome struct {
	Placement Placement
	// MinYield is the best smallest yield of the placement, Average that of the jobs after
	// the second phase.
	MinYield, Average float64
	Yields            []float64 // by job
	// ByProgram says that the second phase was solved as a linear program. Else it was Raise,
	// also where the solver has failed.
	ByProgram bool
	// Unproven says why there may be a better placement, of Exact; empty elsewhere.
	Unproven string
}

// Solve places the jobs and shares the hosts among them. The error is an *Infeasible where
// no placement was found.
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
