// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// ordered is a placement as a sequence of moves that can be made one after the other.
type ordered struct {
	moves   []Move
	at      []int     // host of each job at the end
	loads   []float64 // at the end
	dropped []drop
}

type drop struct {
	job, to int
	why     string
}

// walk simulates the cloud while the moves of a plan are made.
type walk struct {
	*view
	states *inventory.States
	at     []int
	loads  []float64
	memory []float64
	moves  []Move
	left   budget
}

// budget is how much more the moves may cost. anyNumber and anyMemory mean no limit.
type budget struct {
	migrations int
	memory     float64
	anyNumber  bool
	anyMemory  bool
}

// walk returns the state of a plan before its first move.
func (v *view) walk(o Options) *walk {
	w := &walk{
		view: v, states: v.States, at: v.now(), loads: v.loads(v.now()), memory: make([]float64, len(v.hosts)),
		left: budget{o.Migrations, float64(o.MemoryMB), o.Migrations == 0, o.MemoryMB == 0},
	}
	for h := range v.hosts {
		w.memory[h] = v.hosts[h].other
	}
	for i := range v.jobs {
		w.memory[v.jobs[i].host] += v.jobs[i].memory
	}
	return w
}

// refuses returns the reason why job j cannot go to a host now; "" if it can.
func (w *walk) refuses(j, to int) string {
	one := &w.jobs[j]
	switch {
	case one.stays != "":
		return one.stays
	case w.memory[to]+one.memory > w.hosts[to].memory+slack:
		return "its memory is not free there"
	}
	r := one.request
	if r.Group != nil {
		r = w.inGroup(r)
	}
	return w.Situation.refuses(w.states, r, w.hosts[to].place)
}

// inGroup returns the request with the hosts on which the members of its server group are after the
// moves so far.
func (w *walk) inGroup(r *placing.Request) *placing.Request {
	next, group := *r, *r.Group
	group.Hosts = nil
	for _, member := range group.Members {
		for _, i := range w.states.HostsOf(member) {
			group.Hosts = append(group.Hosts, w.states.Host(i).Name)
		}
	}
	next.Group = &group
	return &next
}

func (w *walk) affords(j int) bool {
	return (w.left.anyNumber || w.left.migrations > 0) && (w.left.anyMemory || w.left.memory >= w.jobs[j].memory-slack)
}

// after returns the load of the fullest host if job j were on another host.
func (w *walk) after(j, to int) float64 {
	fullest := 0.0
	for h, load := range w.loads {
		switch h {
		case w.at[j]:
			load -= w.jobs[j].cpu / w.hosts[h].cpu
		case to:
			load += w.jobs[j].cpu / w.hosts[h].cpu
		}
		fullest = max(fullest, load)
	}
	return fullest
}

// move enters the move of job j to host to. between marks a move that only makes room for another.
func (w *walk) move(j, to int, between bool) {
	one, from := &w.jobs[j], w.at[j]
	source, target := w.hosts[from].place, w.hosts[to].place
	w.states = moved(w.states, one.one, one.request.Resources, source, target)
	w.at[j] = to
	w.loads[from] -= one.cpu / w.hosts[from].cpu
	w.loads[to] += one.cpu / w.hosts[to].cpu
	w.memory[from] -= one.memory
	w.memory[to] += one.memory
	w.left.migrations--
	w.left.memory -= one.memory
	w.moves = append(w.moves, Move{
		Instance: one.one.ID, Name: one.one.Name, ProjectID: one.one.ProjectID,
		From: w.states.Host(source).Name, To: w.states.Host(target).Name,
		VCPUs: one.one.Flavor.Resources.VCPUs, MemoryMB: one.one.Flavor.Resources.MemoryMB, Need: one.cpu,
		Yield: yieldOf(slices.Max(w.loads)), Between: between,
	})
}

// order puts the moves that lead to a placement in sequence. At each step it chooses the move after
// which the smallest yield is largest, so that a run that is stopped early has had most of the
// benefit. If no move is possible because each requires another one first, a job makes room by
// moving to a third host for a while. If that does not help, order drops the move of the job with
// the smallest need.
//
// If first is not nil, jobs with a smaller value of first move before others.
func (v *view) order(at []int, o Options, first func(job int) int) ordered {
	w := v.walk(o)
	pending := map[int]int{}
	for i, h := range at {
		if h != w.at[i] {
			pending[i] = h
		}
	}
	var dropped []drop
	around := map[int]bool{}
	for len(pending) > 0 {
		if j := w.best(pending, first); j >= 0 {
			w.move(j, pending[j], false)
			delete(pending, j)
			continue
		}
		if w.stepAside(pending, around) {
			continue
		}
		j := v.least(pending)
		why := "the budget is used up"
		if w.affords(j) {
			why = w.refuses(j, pending[j])
		}
		dropped = append(dropped, drop{j, pending[j], why})
		delete(pending, j)
	}
	w.markWays()
	return ordered{w.moves, w.at, w.loads, dropped}
}

// many is the number of pending moves above which best returns the first possible move instead of
// the best one.
const many = 200

// best returns the pending job that moves next; -1 if none can. pending contains the destination of
// each job.
func (w *walk) best(pending map[int]int, first func(int) int) int {
	best, load, turn := -1, 0.0, 0
	for j := range w.jobs { // in their order, so that plans are deterministic
		to, is := pending[j]
		if !is || !w.affords(j) {
			continue
		}
		mine, after := 0, w.after(j, to)
		if first != nil {
			mine = first(j)
		}
		better := best < 0 || mine < turn || mine == turn && (after < load-slack || after < load+slack && w.relieves(j, best))
		if better && w.refuses(j, to) == "" {
			if best, load, turn = j, after, mine; len(pending) > many && first == nil {
				break
			}
		}
	}
	return best
}

// relieves reports whether job j leaves a fuller host than job other does.
func (w *walk) relieves(j, other int) bool { return w.loads[w.at[j]] > w.loads[w.at[other]]+slack }

// stepAside moves a job to a host where it does not stay, so that another job can move. Each job
// steps aside at most once, and no host becomes fuller than the fullest is now.
func (w *walk) stepAside(pending map[int]int, around map[int]bool) bool {
	if !w.left.anyNumber && w.left.migrations <= len(pending) {
		return false
	}
	rest := 0.0
	for j := range pending {
		rest += w.jobs[j].memory
	}
	fullest := max(1, slices.Max(w.loads))
	for j := range w.jobs {
		to, is := pending[j]
		if !is || around[j] || !w.left.anyMemory && w.left.memory < rest+w.jobs[j].memory-slack {
			continue
		}
		for h := range w.hosts {
			if h == to || h == w.at[j] || w.after(j, h) > fullest+slack || w.refuses(j, h) != "" {
				continue
			}
			tried := *w
			tried.at, tried.loads, tried.memory = slices.Clone(w.at), slices.Clone(w.loads), slices.Clone(w.memory)
			tried.moves = slices.Clone(w.moves)
			tried.move(j, h, true)
			if tried.best(pending, func(k int) int {
				if k == j {
					return 1
				}
				return 0
			}) != j && tried.best(pending, nil) >= 0 {
				around[j] = true
				*w = tried
				return true
			}
		}
	}
	return false
}

// least returns the pending job with the smallest need.
func (v *view) least(pending map[int]int) int {
	least := -1
	for j := range v.jobs {
		if _, is := pending[j]; is && (least < 0 || v.jobs[j].cpu < v.jobs[least].cpu) {
			least = j
		}
	}
	return least
}

// markWays clears Between on the last move of each instance, because the second move of an instance
// may have been dropped.
func (w *walk) markWays() {
	last := map[string]int{}
	for n, m := range w.moves {
		last[m.Instance] = n
	}
	for _, n := range last {
		w.moves[n].Between = false
	}
}
