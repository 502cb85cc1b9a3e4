package packing

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Linear is a linear program: maximise the sum of Objective over variables that are 0 or
// more, and at most Most where that is more than 0, under Rows.
type Linear struct {
	Variables int
	Objective []Term
	Rows      []Row
	Most      []float64 // by variable; nil, and 0, are no bound
	Whole     []bool    // variables that are 0 or 1; nil is none
}

// Term is a variable times a number.
type Term struct {
	Variable int
	Factor   float64
}

// Row says that a sum is at most, or exactly, a number.
type Row struct {
	Terms []Term
	Exact bool
	Is    float64
}

// Optimum is a solution of a Linear; Proven says that there is no better.
type Optimum struct {
	Value  float64
	Values []float64
	Proven bool
}

// Solver solves linear programs. That there is no solution is an *Infeasible.
type Solver interface {
	Solve(ctx context.Context, l *Linear) (Optimum, error)
}

// program has the variables of a problem: one for each task on each host, how much of the
// task is there, and the yield.
type program struct {
	p     *Problem
	tasks []task
	Linear
}

// on is the variable of how much of a task is on a host, share that of the CPU that it is
// given there.
func (l *program) on(t, h int) int    { return 2 * (t*len(l.p.Hosts) + h) }
func (l *program) share(t, h int) int { return l.on(t, h) + 1 }
func (l *program) yield() int         { return 2 * len(l.tasks) * len(l.p.Hosts) }

// newProgram writes the problem as (3) to (11), or (12) to (21), of the paper, without that
// a task is on one host only. A host gives a task no more
// CPU than the part of it that is there needs: that is (7) and (10) in one where tasks are
// whole, and leaves the relaxed optimum of identical hosts as it is.
func newProgram(p *Problem) *program {
	l := &program{p: p, tasks: p.tasks()}
	l.Variables = l.yield() + 1
	l.Objective = []Term{{l.yield(), 1}}
	l.Most = make([]float64, l.Variables)
	l.Most[l.yield()] = 1
	for t := range l.tasks {
		l.placed(t)
	}
	for h := range p.Hosts {
		l.held(h)
	}
	l.parallel()
	return l
}

// placed says that a task is somewhere, gets CPU only where it is and no more than it
// needs, and the yield of what it needs.
func (l *program) placed(t int) {
	var everywhere, given []Term
	need := l.tasks[t].cpu
	for h := range l.p.Hosts {
		everywhere = append(everywhere, Term{l.on(t, h), 1})
		given = append(given, Term{l.share(t, h), -1})
		l.Most[l.on(t, h)] = 1
		l.Rows = append(l.Rows, Row{Terms: []Term{{l.share(t, h), 1}, {l.on(t, h), -need}}})
	}
	l.Rows = append(l.Rows, Row{Terms: everywhere, Exact: true, Is: 1})
	if need > 0 {
		l.Rows = append(l.Rows, Row{Terms: append(given, Term{l.yield(), need})})
	}
}

// held bounds what is on a host.
func (l *program) held(h int) {
	var cpu, memory []Term
	for t := range l.tasks {
		cpu = append(cpu, Term{l.share(t, h), 1})
		memory = append(memory, Term{l.on(t, h), l.tasks[t].memory})
	}
	l.Rows = append(l.Rows, Row{Terms: cpu, Is: l.p.Hosts[h].CPU}, Row{Terms: memory, Is: l.p.Hosts[h].Memory})
}

// parallel gives all tasks of a job the same (20).
func (l *program) parallel() {
	for t := range l.tasks {
		if l.tasks[t].number == 0 || l.tasks[t].cpu == 0 {
			continue
		}
		var same []Term
		for h := range l.p.Hosts {
			same = append(same, Term{l.share(t, h), 1}, Term{l.share(t-1, h), -1})
		}
		l.Rows = append(l.Rows, Row{Terms: same, Exact: true})
	}
}

// moved bounds what is moved (31).
func (l *program) moved() {
	var moved []Term
	for t := range l.tasks {
		for h := range l.p.Hosts {
			if at := l.tasks[t].at; at >= 0 && at != h && l.tasks[t].price > 0 {
				moved = append(moved, Term{l.on(t, h), l.tasks[t].price})
			}
		}
	}
	if len(moved) > 0 {
		l.Rows = append(l.Rows, Row{Terms: moved, Is: l.p.Budget})
	}
}

// whole lets a task be on one host only, where it may be, and with a placement now bounds
// what is moved.
func (l *program) whole() {
	l.Whole = make([]bool, l.Variables)
	for t := range l.tasks {
		for h := range l.p.Hosts {
			l.Whole[l.on(t, h)] = true
			if !l.p.may(&l.tasks[t], h) {
				l.Rows = append(l.Rows, Row{Terms: []Term{{l.on(t, h), 1}}, Exact: true})
			}
		}
	}
	if l.p.Current != nil {
		l.moved()
	}
}

// placement reads where tasks are from the values of a whole solution.
func (l *program) placement(values []float64) Placement {
	hosts := make([]int, len(l.tasks))
	for t := range hosts {
		for h := range l.p.Hosts {
			if values[l.on(t, h)] > values[l.on(t, hosts[t])] {
				hosts[t] = h
			}
		}
	}
	return l.p.placement(l.tasks, hosts)
}

// Relaxed is the largest smallest yield where tasks may be spread over hosts. It is the Bound
// where hosts are identical, and may be less where they are not.
func (p *Problem) Relaxed(ctx context.Context, solver Solver) (float64, error) {
	if err := p.sized(); err != nil {
		return 0, err
	}
	found, err := newProgram(p).relaxed(ctx, solver)
	return found.Value, err
}

// mostVariables is how many variables a program may have: a solver takes hours for fewer.
const mostVariables = 200_000

// sized refuses a problem whose program would be too large.
func (p *Problem) sized() error {
	if n := 2*len(p.tasks())*len(p.Hosts) + 1; n > mostVariables {
		return fault.Field("jobs", "make a linear program of %d variables on %d hosts; at most %d can be solved", n, len(p.Hosts), mostVariables)
	}
	return nil
}

func (l *program) relaxed(ctx context.Context, solver Solver) (Optimum, error) {
	found, err := solver.Solve(ctx, &l.Linear)
	if infeasible, is := errors.AsType[*Infeasible](err); is {
		return Optimum{}, &Infeasible{Reason: "the relaxed problem has no solution", Proven: infeasible.Proven}
	} else if err != nil {
		return Optimum{}, fmt.Errorf("solve the relaxed problem: %w", err)
	}
	return found, nil
}

// Program finds a best placement as a mixed integer linear program, for instances that are
// too large for Exact.
type Program struct{ Solver Solver }

// Place implements Algorithm; as that of Exact.
func (a Program) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	if err := p.sized(); err != nil {
		return nil, err
	}
	l := newProgram(p)
	l.whole()
	found, err := a.Solver.Solve(ctx, &l.Linear)
	if infeasible, is := errors.AsType[*Infeasible](err); is && infeasible.Proven {
		return nil, &Infeasible{Reason: p.noPlacement(), Proven: true}
	} else if is {
		return nil, &Infeasible{Reason: "no placement was found, and whether there is one is not known: the time of the solver was up"}
	} else if err != nil {
		return nil, fmt.Errorf("solve the integer program: %w", err)
	}
	placed := l.placement(found.Values)
	if !found.Proven {
		return placed, &Unproven{Reason: "the time of the solver was up"}
	}
	return placed, nil
}

// RaiseExactly is Raise with the largest average that there is, also for parallel jobs.
func (p *Problem) RaiseExactly(ctx context.Context, solver Solver, at Placement, smallest float64) ([]float64, error) {
	l := Linear{Variables: len(p.Jobs), Most: make([]float64, len(p.Jobs))}
	on := make([][]Term, len(p.Hosts))
	left := make([]float64, len(p.Hosts))
	for h := range left {
		left[h] = p.Hosts[h].CPU
	}
	for i, j := range p.Jobs {
		l.Objective = append(l.Objective, Term{i, 1})
		if l.Most[i] = 1 - smallest; j.CPU == 0 {
			l.Most[i] = 1
			continue
		}
		count := map[int]float64{}
		for _, h := range at[i] {
			count[h]++
			left[h] -= smallest * j.CPU
		}
		for h := range p.Hosts {
			if count[h] > 0 {
				on[h] = append(on[h], Term{i, count[h] * j.CPU})
			}
		}
	}
	if smallest >= 1-slack {
		return p.Raise(at, smallest), nil
	}
	for h, terms := range on {
		if len(terms) > 0 {
			l.Rows = append(l.Rows, Row{Terms: terms, Is: max(0, left[h])})
		}
	}
	found, err := solver.Solve(ctx, &l)
	if err != nil {
		return nil, fmt.Errorf("solve the linear program of the second phase: %w", err)
	}
	yields := make([]float64, len(p.Jobs))
	for i, j := range p.Jobs {
		if yields[i] = min(1, smallest+found.Values[i]); j.CPU == 0 {
			yields[i] = 1
		}
	}
	return yields, nil
}
