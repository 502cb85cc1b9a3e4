// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Greedy is one of the greedy heuristics of section 3.3: each task goes to the host whose tasks
// have the smallest need of CPU, among the hosts with enough memory.
type Greedy struct {
	Name string
	// Sorted places the tasks with the most memory first; otherwise they keep their order.
	Sorted bool
	// Backtrack tries other hosts for earlier tasks if a task finds no host.
	Backtrack bool
}

// Greedies lists GR, SG, GB and SGB.
var Greedies = []Greedy{{"gr", false, false}, {"sg", true, false}, {"gb", false, true}, {"sgb", true, true}}

// mostAttempts bounds backtracking: the number of attempts to put a task on a host, as in
// the paper.
const mostAttempts = 500_000

// Place implements Algorithm.
func (g Greedy) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	tasks := p.tasks()
	order := make([]int, len(tasks))
	for i := range order {
		order[i] = i
	}
	if g.Sorted {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tasks[b].memory, tasks[a].memory) })
	}
	s := stacking{ctx: ctx, hosts: p.Hosts, tasks: tasks, order: order, cpu: make([]float64, len(p.Hosts)), memory: make([]float64, len(p.Hosts)), at: make([]int, len(tasks))}
	found := false
	if g.Backtrack {
		found = s.backtrack()
	} else {
		found = s.straight()
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !found && s.attempts > mostAttempts:
		return nil, &Infeasible{Reason: fmt.Sprintf("%s finds no placement in which the memory of all tasks fits within %d attempts", g.Name, mostAttempts)}
	case !found && g.Backtrack:
		return nil, &Infeasible{Reason: "there is no placement in which the memory of all tasks fits", Proven: true}
	case !found:
		return nil, &Infeasible{Reason: fmt.Sprintf("%s finds no placement in which the memory of all tasks fits", g.Name)}
	}
	return p.placement(tasks, s.at), nil
}

// stacking is a placement in progress, in which tasks are put on hosts one after the other, and
// removed again.
type stacking struct {
	ctx         context.Context
	hosts       []Host
	tasks       []task
	order       []int
	cpu, memory []float64 // in use on each host; cpu is a fraction of the host's CPU
	at          []int
	attempts    int
}

// straight puts each task on the least loaded host with enough memory. It returns false if there is
// no such host for a task.
func (s *stacking) straight() bool {
	for _, t := range s.order {
		host := -1
		for h := range s.hosts {
			if s.fits(t, h) && (host < 0 || s.cpu[h] < s.cpu[host]) {
				host = h
			}
		}
		if host < 0 || s.ctx.Err() != nil {
			return false
		}
		s.put(t, host)
	}
	return true
}

// backtrack puts tasks on hosts. If no host has room for a task, backtrack removes earlier tasks,
// the last first, and puts them on their next host. It returns false when it has tried everything,
// or after mostAttempts attempts.
func (s *stacking) backtrack() bool {
	// A level has the hosts that have not been tried for its task, in their order, and what was
	// used on the task's host before the task was put there.
	type level struct {
		ways        []int
		cpu, memory float64
	}
	levels := make([]level, len(s.order)+1)
	levels[0].ways = s.ordered()
	for depth := 0; depth < len(s.order); {
		l, t := &levels[depth], s.order[depth]
		host := -1
		for host < 0 && len(l.ways) > 0 {
			if s.attempts++; s.attempts > mostAttempts {
				return false
			}
			if h := l.ways[0]; s.fits(t, h) {
				host = h
			}
			l.ways = l.ways[1:]
		}
		switch {
		case s.ctx.Err() != nil || host < 0 && depth == 0:
			return false
		case host >= 0:
			l.cpu, l.memory = s.cpu[host], s.memory[host]
			s.put(t, host)
			depth++
			levels[depth].ways = s.ordered()
		default:
			depth--
			before := s.at[s.order[depth]]
			s.cpu[before], s.memory[before] = levels[depth].cpu, levels[depth].memory
		}
	}
	return true
}

func (s *stacking) fits(t, host int) bool {
	return s.memory[host]+s.tasks[t].memory <= s.hosts[host].Memory+slack
}

func (s *stacking) put(t, host int) {
	s.at[t] = host
	s.cpu[host] += s.tasks[t].cpu / s.hosts[host].CPU
	s.memory[host] += s.tasks[t].memory
}

// ordered returns the hosts, sorted by the load of their tasks, the least loaded first.
func (s *stacking) ordered() []int {
	hosts := make([]int, len(s.hosts))
	for h := range hosts {
		hosts[h] = h
	}
	slices.SortStableFunc(hosts, func(a, b int) int { return cmp.Compare(s.cpu[a], s.cpu[b]) })
	return hosts
}
