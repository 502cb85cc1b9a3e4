// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Linear is a linear program: maximize the sum of Objective subject to Rows. Each variable is at
// least 0 and, if its Most is more than 0, at most that.
type Linear struct {
	Variables int
	Objective []Term
	Rows      []Row
	Most      []float64 // by variable; nil and 0 are no bound
	Whole     []bool    // variables restricted to 0 or 1; nil means none
}

// Term is a variable times a factor.
type Term struct {
	Variable int
	Factor   float64
}

// Row requires that a sum is at most Is, or exactly Is.
type Row struct {
	Terms []Term
	Exact bool
	Is    float64
}

// Optimum is a solution of a Linear. Proven is true if no better one exists.
type Optimum struct {
	Value  float64
	Values []float64
	Proven bool
}

// Solver solves linear programs. If there is no solution, the error is an *Infeasible.
type Solver interface {
	Solve(ctx context.Context, l *Linear) (Optimum, error)
}

// program is a problem as a linear program. For each task and host it has two variables: the part
// of the task that is on the host, and the CPU that the task gets there. The last variable is the
// yield.
type program struct {
	p     *Problem
	tasks []task
	Linear
}

// on returns the index of the variable for the part of task t that is on host h, share the index of
// the variable for the CPU that the task gets there.
func (l *program) on(t, h int) int    { return 2 * (t*len(l.p.Hosts) + h) }
func (l *program) share(t, h int) int { return l.on(t, h) + 1 }
func (l *program) yield() int         { return 2 * len(l.tasks) * len(l.p.Hosts) }

// newProgram returns the problem as equations (3) to (11) or, for parallel jobs, (12) to (21) of
// the paper, without the constraint that a task is on one host only. A task gets no more CPU on a
// host than the part of it there needs. For undivided tasks that combines (7) and (10), and it does
// not change the relaxed optimum of identical hosts.
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

// placed adds the constraints of task t: all its parts are placed, it gets CPU only where they are
// and no more than they need, and in sum it gets the yield.
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

// held adds the limits of CPU and memory on host h.
func (l *program) held(h int) {
	var cpu, memory []Term
	for t := range l.tasks {
		cpu = append(cpu, Term{l.share(t, h), 1})
		memory = append(memory, Term{l.on(t, h), l.tasks[t].memory})
	}
	l.Rows = append(l.Rows, Row{Terms: cpu, Is: l.p.Hosts[h].CPU}, Row{Terms: memory, Is: l.p.Hosts[h].Memory})
}

// parallel adds the constraint that all tasks of a job get the same CPU (20).
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

// moved adds the limit of the budget for moves (31).
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

// whole adds the constraints that each task is on one host only, and on an allowed one. If there is
// a current placement, it also limits the moves.
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

// placement returns the hosts of the tasks in a solution of the integer program.
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

// mostVariables is the largest number of variables in a program; a solver can need hours even for
// fewer.
const mostVariables = 200_000

// sized returns an Invalid fault if the program would be too large.
func (p *Problem) sized() error {
	if n := 2*len(p.tasks())*len(p.Hosts) + 1; n > mostVariables {
		return fault.Field("jobs", "build a linear program of %d variables on %d hosts; at most %d can be solved", n, len(p.Hosts), mostVariables)
	}
	return nil
}

// relaxed returns the solution without the condition that variables are whole numbers.
func (l *program) relaxed(ctx context.Context, solver Solver) (Optimum, error) {
	found, err := solver.Solve(ctx, &l.Linear)
	if infeasible, is := errors.AsType[*Infeasible](err); is {
		return Optimum{}, &Infeasible{Reason: "the relaxed problem has no solution", Proven: infeasible.Proven}
	} else if err != nil {
		return Optimum{}, fmt.Errorf("solve the relaxed problem: %w", err)
	}
	return found, nil
}

// Program finds a best placement with a mixed integer linear program, for problems that are
// too large for Exact.
type Program struct{ Solver Solver }

// Place implements Algorithm. It returns the same errors as Exact.
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
		return nil, &Infeasible{Reason: "no placement was found, but one may exist: the time limit of the solver was reached"}
	} else if err != nil {
		return nil, fmt.Errorf("solve the integer program: %w", err)
	}
	placed := l.placement(found.Values)
	if !found.Proven {
		return placed, &Unproven{Reason: "the time limit of the solver was reached"}
	}
	return placed, nil
}

// RaiseExactly returns the yields of Raise with the largest average that is possible, also for
// parallel jobs.
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
