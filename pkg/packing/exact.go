// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Exact finds a placement with the largest possible smallest yield by branch and bound: it
// minimizes the load of the fullest host. It moves tasks that have a current host only
// within the budget.
type Exact struct {
	// Work bounds the search, counted in hosts that are considered for tasks; 0 means DefaultWork.
	Work int
	// Limit is how long the search may take after the heuristics, which find its first placement; 0
	// means no limit.
	Limit time.Duration
}

// DefaultWork is a search of a few seconds, whatever the number of hosts.
const DefaultWork = 100_000_000

// between is the amount of work between two checks of the context.
const between = 65_536

// Place implements Algorithm. If the search ends early, it returns the best placement found
// with an *Unproven.
func (e Exact) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	s := newBranching(ctx, p, cmp.Or(e.Work, DefaultWork))
	s.seed()
	if s.best > s.floor+slack {
		if e.Limit > 0 {
			limited, stop := context.WithTimeout(ctx, e.Limit)
			defer stop()
			s.ctx = limited
		}
		s.branch(0, 0, 0)
	}
	switch {
	case s.found == nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case s.found == nil && s.over:
		return nil, &Infeasible{Reason: "no placement was found, but one may exist: " + s.ended()}
	case s.found == nil:
		return nil, &Infeasible{Reason: p.noPlacement(), Proven: true}
	}
	placed := p.placement(s.tasks, s.found)
	if s.over {
		return placed, &Unproven{Reason: s.ended()}
	}
	return placed, nil
}

func (p *Problem) noPlacement() string {
	return "there is no placement in which the memory of all tasks fits" + p.within()
}

// within describes, as the end of a sentence, the constraints on a placement other than memory.
func (p *Problem) within() string {
	if p.Current == nil {
		return ""
	}
	return fmt.Sprintf(" and at most the budget of %.6g is moved", p.Budget)
}

// Unproven is the error that accompanies a placement if a better one may exist.
type Unproven struct {
	Reason string // why the search ended
}

func (u *Unproven) Error() string { return u.Reason + ": there may be a better placement" }

// branching is the state of the search. It places one task after the other, those with the largest
// CPU needs first.
type branching struct {
	ctx   context.Context
	p     *Problem
	tasks []task
	order []int
	// rest[i] is the memory of all tasks from index i of the order on.
	rest        []float64
	floor       float64 // lower bound of the load of the fullest host
	cpu, memory []float64
	at          []int
	fresh       []bool // hosts that are no task's current host
	like        []int  // the first host with the same capacity
	seen        []int  // the step that last considered an empty host of this capacity, by the first such host
	turn        int
	free        float64 // free memory of all hosts
	found       []int
	best        float64 // load of the fullest host in found
	work, most  int     // hosts considered, and the limit
	look        int     // the work after which the context is checked next
	over        bool    // the search ended early
}

// newBranching returns the state of an exact search that ends after most nodes. Tasks are tried from the
// largest on.
func newBranching(ctx context.Context, p *Problem, most int) *branching {
	s := &branching{
		ctx: ctx, p: p, tasks: p.tasks(), most: most, best: math.Inf(1), floor: 1 / p.Bound(),
		cpu: make([]float64, len(p.Hosts)), memory: make([]float64, len(p.Hosts)), fresh: make([]bool, len(p.Hosts)),
	}
	s.at = make([]int, len(s.tasks))
	s.order = make([]int, len(s.tasks))
	s.like, s.seen = make([]int, len(p.Hosts)), make([]int, len(p.Hosts))
	first := map[Host]int{}
	for h, host := range p.Hosts {
		if _, known := first[host]; !known {
			first[host] = h
		}
		s.like[h] = first[host]
		s.fresh[h] = true
		s.free += host.Memory
	}
	for i, t := range s.tasks {
		s.order[i] = i
		if t.at >= 0 {
			s.fresh[t.at] = false
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		x, y := &s.tasks[a], &s.tasks[b]
		return cmp.Or(cmp.Compare(y.cpu, x.cpu), cmp.Compare(y.memory, x.memory))
	})
	s.rest = make([]float64, len(s.order)+1)
	for i := len(s.order) - 1; i >= 0; i-- {
		s.rest[i] = s.rest[i+1] + s.tasks[s.order[i]].memory
	}
	return s
}

// seed starts the search with the best placement of the heuristics.
func (s *branching) seed() {
	algorithms := []Algorithm{MCBs[7].Place, MCBs[4].Place, Greedies[1].Place}
	if s.p.Current != nil || s.p.May != nil {
		algorithms = []Algorithm{Adapt{}.Place}
	}
	for _, algorithm := range algorithms {
		placed, err := algorithm(s.ctx, s.p)
		if err != nil || s.p.Current != nil && s.p.Moved(placed) > s.p.Budget+slack {
			continue
		}
		if load := slices.Max(s.p.loads(placed)); load < s.best {
			s.best = max(load, s.floor)
			s.found = flat(placed)
		}
	}
}

// ended returns the reason why the search ended early.
func (s *branching) ended() string {
	if s.ctx.Err() != nil {
		return "the time limit of the search was reached"
	}
	return fmt.Sprintf("the search ended after it had tried %d hosts for tasks", s.most)
}

// flat returns the hosts of all tasks, in the order of the tasks.
func flat(at Placement) []int {
	var hosts []int
	for _, of := range at {
		hosts = append(hosts, of...)
	}
	return hosts
}

// branch places the tasks of the order from depth on. load is the load of the fullest host so far,
// and moved the cost of the moves so far.
func (s *branching) branch(depth int, load, moved float64) {
	if depth == len(s.order) {
		s.best = max(load, s.floor)
		s.found = append(s.found[:0], s.at...)
		return
	}
	if s.giveUp() {
		return
	}
	if s.rest[depth] > s.free+slack*float64(len(s.cpu)) {
		return
	}
	for _, h := range s.ways(depth, moved) {
		t := &s.tasks[s.order[depth]]
		more := 0.0
		if t.at >= 0 && t.at != h {
			more = t.price
		}
		on := (s.cpu[h] + t.cpu) / s.p.Hosts[h].CPU
		if max(load, on) >= s.best-slack {
			continue
		}
		// Restoring the saved values is exact, while subtraction in floating point is not:
		// an empty host must be recognized as empty again.
		cpu, memory, free := s.cpu[h], s.memory[h], s.free
		s.at[s.order[depth]] = h
		s.cpu[h], s.memory[h], s.free = cpu+t.cpu, memory+t.memory, free-t.memory
		s.branch(depth+1, max(load, on), moved+more)
		s.cpu[h], s.memory[h], s.free = cpu, memory, free
		if s.best <= s.floor+slack || s.over {
			return
		}
	}
}

// giveUp reports whether the search has reached its limit of work or time. Each call counts
// as work, even if no host is considered.
func (s *branching) giveUp() bool {
	s.work++
	if s.work > s.look {
		s.look = s.work + between
		s.over = s.over || s.ctx.Err() != nil
	}
	s.over = s.over || s.work > s.most
	return s.over
}

// ways returns the hosts to try for the task at depth, the least loaded first. It returns
// only one of several equal empty hosts, and considers equal tasks in one order only.
func (s *branching) ways(depth int, moved float64) []int {
	t := &s.tasks[s.order[depth]]
	from := 0
	if depth > 0 {
		if before := &s.tasks[s.order[depth-1]]; before.cpu == t.cpu && before.memory == t.memory && before.at < 0 && t.at < 0 && s.p.May == nil {
			from = s.at[s.order[depth-1]]
		}
	}
	ways := make([]int, 0, len(s.cpu))
	s.work += len(s.cpu) - from
	s.turn++
	for h := from; h < len(s.cpu); h++ {
		host := s.p.Hosts[h]
		if s.memory[h]+t.memory > host.Memory+slack || t.at >= 0 && t.at != h && moved+t.price > s.p.Budget+slack || !s.p.may(t, h) {
			continue
		}
		if from == 0 && s.p.May == nil && s.fresh[h] && s.cpu[h] == 0 && s.memory[h] == 0 {
			if s.seen[s.like[h]] == s.turn {
				continue
			}
			s.seen[s.like[h]] = s.turn
		}
		ways = append(ways, h)
	}
	slices.SortStableFunc(ways, func(a, b int) int {
		return cmp.Compare((s.cpu[a]+t.cpu)/s.p.Hosts[a].CPU, (s.cpu[b]+t.cpu)/s.p.Hosts[b].CPU)
	})
	return ways
}
