package packing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Exact finds a placement with the largest smallest yield there is, by branch and bound:
// the fullest host shall be as empty as can be. Where tasks are somewhere already, no more
// than the budget is moved.
type Exact struct {
	// Work bounds the search: it is how many hosts it looks at for all the tasks that it tries
	// to place. 0 is DefaultWork.
	Work int
}

// DefaultWork takes a few seconds, however many hosts there are.
const DefaultWork = 100_000_000

// between is how much work there is between two looks at whether the time is up.
const between = 65_536

// Place implements Algorithm. Where the search was given up it gives the best placement
// that it has found with an *Unproven.
func (e Exact) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	s := newBranching(ctx, p, cmp.Or(e.Work, DefaultWork))
	s.seed()
	if s.best > s.floor+slack {
		s.branch(0, 0, 0)
	}
	switch {
	case s.found == nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case s.found == nil && s.over:
		return nil, &Infeasible{Reason: "no placement was found, and whether there is one is not known: " + s.ended()}
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

// within says what is asked of a placement beside that the memory fits.
func (p *Problem) within() string {
	if p.Current == nil {
		return ""
	}
	return fmt.Sprintf(" and no more is moved than the budget of %.6g", p.Budget)
}

// Unproven says of a placement that it may not be the best; it is an error that comes with
// one.
type Unproven struct {
	Reason string // why the search was ended
}

func (u *Unproven) Error() string { return u.Reason + ": there may be a better placement" }

// branching is the search: tasks are placed one after the other, those that need most CPU
// first.
type branching struct {
	ctx   context.Context
	p     *Problem
	tasks []task
	order []int
	// rest is the memory of the tasks from a place in the order on.
	rest        []float64
	floor       float64 // no fullest host is emptier
	cpu, memory []float64
	at          []int
	fresh       []bool // hosts that nobody is on now
	like        []int  // the first host that has as much
	seen        []int  // in which turn an empty host was a way, by the first that has as much
	turn        int
	free        float64 // memory of all hosts
	found       []int
	best        float64 // load of the fullest host
	work, most  int     // hosts that were looked at, and may be
	look        int     // the work after which the context is looked at
	over        bool    // the search was given up
}

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

// seed begins with what the heuristics find.
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

// ended says why the search was given up.
func (s *branching) ended() string {
	if s.ctx.Err() != nil {
		return "the time for the search was up"
	}
	return fmt.Sprintf("the search was ended after it had looked at %d hosts for tasks", s.most)
}

// flat gives the hosts of all tasks in their order.
func flat(at Placement) []int {
	var hosts []int
	for _, of := range at {
		hosts = append(hosts, of...)
	}
	return hosts
}

// branch places the tasks from depth on; load is that of the fullest host so far, and moved
// the memory that has been moved.
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
		// What was is kept rather than taken off again, which would not give the same in
		// floating point: a host that is empty again shall look so.
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

// giveUp says that the search has looked at as many hosts as it may, or for as long. A step is
// work, too, where it looks at none.
func (s *branching) giveUp() bool {
	s.work++
	if s.work > s.look {
		s.look = s.work + between
		s.over = s.over || s.ctx.Err() != nil
	}
	s.over = s.over || s.work > s.most
	return s.over
}

// ways gives the hosts to try for the task at depth, the emptiest first: of those that look
// the same only one, and of tasks that look the same only in one order.
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
