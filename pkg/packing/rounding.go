// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"fmt"
)

// Chance draws random numbers that are at least 0 and less than 1.
type Chance interface{ Float64() float64 }

// Rounding is RRND or RRNZ (section 3.2): it solves the relaxed problem, in which tasks may be
// divided, and draws a host for each task. The probability of a host is proportional to the part of
// the task that is there in the relaxed solution.
type Rounding struct {
	Name string
	// Least is the smallest probability of each host: 0 for RRND, 0.01 for RRNZ.
	Least  float64
	Solver Solver
	Chance Chance
}

// Roundings returns RRND and RRNZ.
func Roundings(solver Solver, chance Chance) []Rounding {
	return []Rounding{{"rrnd", 0, solver, chance}, {"rrnz", 0.01, solver, chance}}
}

// Place implements Algorithm.
func (a Rounding) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	if err := p.sized(); err != nil {
		return nil, err
	}
	l := newProgram(p)
	found, err := l.relaxed(ctx, a.Solver)
	if err != nil {
		return nil, err
	}
	return a.Round(p, func(t, h int) float64 { return found.Values[l.on(t, h)] })
}

// Round draws a host for each task, in their order, among the hosts on which its memory still fits.
// part returns the part of a task that is on a host in the relaxed solution.
func (a Rounding) Round(p *Problem, part func(task, host int) float64) (Placement, error) {
	tasks := p.tasks()
	memory := make([]float64, len(p.Hosts))
	at := make([]int, len(tasks))
	chances := make([]float64, len(p.Hosts))
	for t := range tasks {
		total := 0.0
		for h := range p.Hosts {
			chances[h] = 0
			if memory[h]+tasks[t].memory <= p.Hosts[h].Memory+slack {
				if chances[h] = max(part(t, h), a.Least); chances[h] < slack {
					chances[h] = 0
				}
			}
			total += chances[h]
		}
		if total == 0 {
			return nil, &Infeasible{Reason: fmt.Sprintf("%s finds no host for a task of job %s", a.Name, p.Jobs[tasks[t].job].ID)}
		}
		at[t] = draw(chances, total*a.Chance.Float64())
		memory[at[t]] += tasks[t].memory
	}
	return p.placement(tasks, at), nil
}

// draw returns the first index at which the sum of chances[0] to chances[index] exceeds the point.
func draw(chances []float64, point float64) int {
	last := 0
	for h, chance := range chances {
		if chance == 0 {
			continue
		}
		if last = h; point < chance {
			break
		}
		point -= chance
	}
	return last
}
