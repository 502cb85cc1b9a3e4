// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"slices"
)

// Adapt changes a placement for a changed workload and moves no more memory than the budget
// (section 6.2, which does not specify the heuristic). To reach a yield it keeps the tasks of each
// host as far as they fit, removes those that are cheapest to move, and packs these and the new
// tasks with MCB8 into the remaining capacity. It searches for the largest such yield as MCB does.
// Then it moves and swaps single tasks off the fullest host as long as that raises the smallest
// yield and the budget suffices.
type Adapt struct{}

// Place implements Algorithm.
func (a Adapt) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	tasks := p.tasks()
	var best []int
	try := func(yield float64) bool {
		found := a.pack(p, tasks, yield)
		if found == nil {
			return false
		}
		if best == nil || p.MinYield(p.placement(tasks, found)) > p.MinYield(p.placement(tasks, best)) {
			best = found
		}
		return true
	}
	if high := p.Bound(); !try(high) {
		for low := 0.0; high-low > width; {
			if middle := (low + high) / 2; try(middle) {
				low = middle
			} else {
				high = middle
			}
		}
		try(0)
	}
	if best == nil {
		return nil, &Infeasible{Reason: "adapt finds no placement in which the memory of all tasks fits" + p.within()}
	}
	polish(ctx, p, tasks, best)
	return p.placement(tasks, best), nil
}

// pack returns the host of each task, in a placement in which every task gets the yield; nil if it
// finds none within the budget.
func (a Adapt) pack(p *Problem, tasks []task, yield float64) []int {
	at := make([]int, len(tasks))
	room := slices.Clone(p.Hosts)
	var leave []int
	moved := 0.0
	for h := range p.Hosts {
		kept, gone := keep(p.Hosts[h], tasks, h, yield)
		for _, t := range kept {
			at[t] = h
			room[h].CPU -= yield * tasks[t].cpu
			room[h].Memory -= tasks[t].memory
		}
		for _, t := range gone {
			moved += tasks[t].price
		}
		leave = append(leave, gone...)
	}
	if moved > p.Budget+slack {
		return nil
	}
	for t := range tasks {
		if tasks[t].at < 0 {
			leave = append(leave, t)
		}
	}
	slices.Sort(leave)
	rest := make([]task, len(leave))
	for i, t := range leave {
		rest[i] = tasks[t]
	}
	packer := newPacker(room, rest, mcb8)
	if p.May != nil {
		packer.may = p.may
	}
	found := packer.pack(yield)
	if found == nil && len(rest) > 0 {
		return nil
	}
	for i, t := range leave {
		at[t] = found[i]
	}
	return at
}

// keep divides the tasks whose current host is h into kept and gone, so that the kept ones get the
// yield and their memory. The task with the lowest price for the CPU that it frees goes first. In
// the end tasks come back if there is room for them after all.
func keep(host Host, tasks []task, h int, yield float64) (kept, gone []int) {
	cpu, memory := 0.0, 0.0
	for t := range tasks {
		if tasks[t].at == h {
			kept = append(kept, t)
			cpu += yield * tasks[t].cpu
			memory += tasks[t].memory
		}
	}
	for cpu > host.CPU+slack || memory > host.Memory+slack {
		worst := slices.MinFunc(kept, func(a, b int) int { return cheaper(tasks, a, b, cpu-host.CPU, yield) })
		kept = slices.DeleteFunc(kept, func(t int) bool { return t == worst })
		gone = append(gone, worst)
		cpu -= yield * tasks[worst].cpu
		memory -= tasks[worst].memory
	}
	for i := 0; i < len(gone); i++ {
		t := gone[i]
		if cpu+yield*tasks[t].cpu <= host.CPU+slack && memory+tasks[t].memory <= host.Memory+slack {
			cpu, memory = cpu+yield*tasks[t].cpu, memory+tasks[t].memory
			kept = append(kept, t)
			gone = slices.Delete(gone, i, i+1)
			i--
		}
	}
	return kept, gone
}

// cheaper compares tasks by the price of the CPU that moving them frees. CPU that a task frees
// beyond over, the host's excess, does not count.
func cheaper(tasks []task, a, b int, over, yield float64) int {
	price := func(t int) float64 {
		frees := yield * tasks[t].cpu
		if over > 0 {
			frees = min(frees, over)
		}
		return tasks[t].price / max(frees, slack)
	}
	switch x, y := price(a), price(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return a - b
}

// polish improves a placement by single moves and swaps of two tasks off the fullest host.
// Each step is the best within the remaining budget. It ends when no step helps.
func polish(ctx context.Context, p *Problem, tasks []task, at []int) {
	s := newPolishing(p, tasks, at)
	for ctx.Err() == nil {
		step, better := s.best()
		if !better {
			return
		}
		s.carry(step)
	}
}

// polishing is a placement that polish improves.
type polishing struct {
	p           *Problem
	tasks       []task
	at          []int
	cpu, memory []float64
	left        float64 // what is left of the budget
}

// step moves task t to a host and, unless other is -1, task other to the host of t. load is the
// load of the fuller of the two hosts afterwards. cost is how much of the budget the step uses; it
// is negative if the step reduces the cost of the moves.
type step struct {
	t, to, other int
	load, cost   float64
}

// newPolishing returns the state of an improvement that begins with tasks at these hosts, by task.
func newPolishing(p *Problem, tasks []task, at []int) *polishing {
	s := &polishing{p: p, tasks: tasks, at: at, cpu: make([]float64, len(p.Hosts)), memory: make([]float64, len(p.Hosts)), left: p.Budget}
	for t, h := range at {
		s.cpu[h] += tasks[t].cpu
		s.memory[h] += tasks[t].memory
		s.left -= s.cost(t, h)
	}
	return s
}

// cost returns the price of moving task t to host h; 0 if h is its current host.
func (s *polishing) cost(t, h int) float64 {
	if from := s.tasks[t].at; from < 0 || from == h {
		return 0
	}
	return s.tasks[t].price
}

func (s *polishing) load(h int, more float64) float64 { return (s.cpu[h] + more) / s.p.Hosts[h].CPU }

// best returns the step that reduces the load of the fullest host most; better is false if no step
// reduces it.
func (s *polishing) best() (found step, better bool) {
	full := 0
	for h := range s.cpu {
		if s.load(h, 0) > s.load(full, 0) {
			full = h
		}
	}
	found.load = s.load(full, 0)
	if found.load <= 1 {
		return found, false
	}
	consider := func(one step) {
		if one.cost <= s.left+slack && (one.load < found.load-slack || better && one.load < found.load+slack && one.cost < found.cost-slack) {
			found, better = one, true
		}
	}
	for t, h := range s.at {
		if h != full || s.tasks[t].cpu == 0 {
			continue
		}
		for to := range s.cpu {
			if to == full || !s.p.may(&s.tasks[t], to) {
				continue
			}
			if s.memory[to]+s.tasks[t].memory <= s.p.Hosts[to].Memory+slack {
				load := max(s.load(full, -s.tasks[t].cpu), s.load(to, s.tasks[t].cpu))
				consider(step{t: t, to: to, other: -1, load: load, cost: s.cost(t, to) - s.cost(t, full)})
			}
		}
		s.swaps(t, consider)
	}
	return found, better
}

// swaps calls consider with the steps that swap task t for a task on another host that needs less
// CPU.
func (s *polishing) swaps(t int, consider func(step)) {
	from := s.at[t]
	for other, to := range s.at {
		freed := s.tasks[t].cpu - s.tasks[other].cpu
		if to == from || freed <= 0 || !s.p.may(&s.tasks[t], to) || !s.p.may(&s.tasks[other], from) {
			continue
		}
		more := s.tasks[t].memory - s.tasks[other].memory
		if s.memory[to]+more > s.p.Hosts[to].Memory+slack || s.memory[from]-more > s.p.Hosts[from].Memory+slack {
			continue
		}
		consider(step{
			t: t, to: to, other: other, load: max(s.load(from, -freed), s.load(to, freed)),
			cost: s.cost(t, to) - s.cost(t, from) + s.cost(other, from) - s.cost(other, to),
		})
	}
}

// carry carries out a step: a move, or an exchange of two tasks.
func (s *polishing) carry(one step) {
	from := s.at[one.t]
	s.move(one.t, one.to)
	if one.other >= 0 {
		s.move(one.other, from)
	}
	s.left -= one.cost
}

// move moves task t to host to.
func (s *polishing) move(t, to int) {
	for _, change := range []struct {
		h    int
		sign float64
	}{{s.at[t], -1}, {to, 1}} {
		s.cpu[change.h] += change.sign * s.tasks[t].cpu
		s.memory[change.h] += change.sign * s.tasks[t].memory
	}
	s.at[t] = to
}
