// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Plan decides what is done now. All VMs of a parallel request do the same at the same time. The
// plan depends on the situation alone, and not on the order of Holds and Requests.
//
// VMs on the nodes come first: those in the way of a reservation leave, the youngest first where
// not all must. Then the queue follows in its order. Each unit gets the earliest start that the
// units before it leave, and begins if that is now. Otherwise Backfilling decides whether it is
// promised that start, so that those behind it cannot use its places. A VM that was suspended, or
// will be, is always promised its resumption. With Backfilling None, no unit behind one that has
// to wait begins. A unit that can never start, on the nodes that exist, does not block others.
func (r Rules) Plan(s Situation) Plan {
	return newPlanner(r, s).compute()
}

// planner makes one plan.
type planner struct {
	rules    Rules
	now      span.Instant
	requests []*Request
	nodes    []*profile
	byName   map[string]int
	byShape  map[openingsKey]*openings
	thorough bool // searches look at all nodes
	images   *arrivals
	units    []*unit // of the queue
	later    []*unit // those that wait, and are promised nothing
	// blocked is when the unit starts that those in later may not overtake.
	blocked span.Instant
	// position is the place of requests among those that wait.
	position map[string]int
	plan     Plan
	scratch  []slots
	parts    agenda // of the last search, as is ahead
	ahead    agenda
	pieces   int // of the unit that is being laid out
}

// mostPieces bounds the pieces of a unit in the plan; the end of a unit with more pieces is not
// known.
const mostPieces = 32

// newPlanner returns the state of a plan before its first decision: the requests in order, and what is
// free on each node and when.
func newPlanner(r Rules, s Situation) *planner {
	p := &planner{
		rules: r, now: s.Now, requests: sorted(s.Requests), byName: make(map[string]int, len(s.Nodes)), position: map[string]int{},
		byShape: map[openingsKey]*openings{},
		plan:    Plan{Expected: map[string]Expectation{}, Next: span.Forever},
	}
	for _, n := range s.Nodes {
		first := &p.node(n.Name, true).segments[0]
		first.free, first.held = n.Free, n.Free
	}
	for _, q := range p.requests {
		for i := range q.VMs {
			if name := q.VMs[i].Node; name != "" {
				p.node(name, false)
			}
		}
	}
	names := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		names[i] = n.name
	}
	p.images = &arrivals{now: p.now, queue: s.Images, nodes: names, images: map[string]*arrival{}}
	for _, h := range s.Holds {
		h.Span.Start = max(h.Span.Start, p.now)
		if i, known := p.byName[h.Node]; known && !h.Span.Empty() {
			p.nodes[i].hold(h.Span, h.Resources)
			p.next(h.Span.End)
		}
	}
	return p
}

func (p *planner) compute() Plan {
	p.keep()
	p.decide()
	p.expect()
	return p.plan
}

// node returns the profile of a node, and creates it where it is missing.
func (p *planner) node(name string, listed bool) *profile {
	i, known := p.byName[name]
	if !known {
		i = len(p.nodes)
		p.byName[name] = i
		p.nodes = append(p.nodes, &profile{name: name, listed: listed, segments: []segment{{at: p.now}}})
	}
	return p.nodes[i]
}

// next notes that something is due at an instant.
func (p *planner) next(at span.Instant) {
	if at > p.now {
		p.plan.Next = min(p.plan.Next, at)
	}
}

// act adds an act to the plan.
func (p *planner) act(action Action, r *Request, vm *VM, node string, until span.Instant, reason string) {
	p.plan.Acts = append(p.plan.Acts, Act{Action: action, Request: r.ID, VM: vm.ID, Node: node, Until: until, Reason: reason})
	p.next(until)
}

// decide walks the queue and begins what can begin.
func (p *planner) decide() {
	promises, blocked := p.rules.promises(), false
	for _, u := range p.units {
		if blocked || promises == 0 && p.mustWait(u) {
			p.later = append(p.later, u)
			continue
		}
		at, ok := p.find(u, p.now)
		switch {
		case !ok:
			p.never(u)
		case u.running:
			p.layOut(u, at)
		case at.start <= at.there:
			if at.late = p.stillTaken(u, at); at.late {
				blocked = p.rules.Backfilling == None
			} else {
				p.begin(u, at)
			}
			p.wait(u, at, p.layOut(u, at))
		case p.rules.Backfilling == None:
			blocked, p.blocked = true, at.start
			p.wait(u, at, p.layOut(u, at))
		case u.ran:
			p.begin(u, at)
			p.wait(u, at, p.layOut(u, at))
		case promises > 0:
			promises--
			p.begin(u, at)
			p.wait(u, at, p.layOut(u, at))
		default:
			p.later = append(p.later, u)
		}
	}
}

// mustWait reports, at little cost, that a unit cannot begin now and is promised nothing.
func (p *planner) mustWait(u *unit) bool {
	return p.rules.Backfilling != None && !u.running && !u.ran && u.request.Image.ID == "" && !p.roomAt(u, p.now)
}

// expect finds when the units can start that are promised nothing.
func (p *planner) expect() {
	from := max(p.now, p.blocked)
	for _, u := range p.later {
		at, ok := p.find(u, from)
		switch {
		case !ok:
			p.never(u)
		case u.running:
			p.layOut(u, at)
		default:
			p.wait(u, at, p.layOut(u, at))
			if p.rules.Backfilling == None {
				from = max(from, at.start)
			}
		}
	}
}

// stillTaken reports whether a unit could start now if the VMs that are being ended were gone.
func (p *planner) stillTaken(u *unit, at spot) bool {
	if at.start > p.now {
		return false
	}
	needed := map[int]int{}
	for _, node := range at.nodes {
		if !p.nodes[node].leaving.IsZero() {
			needed[node]++
		}
	}
	for node, n := range needed {
		if free := p.nodes[node].segments[0].free.Sub(p.nodes[node].leaving); times(free, u.request.Shape, n) < n {
			return true
		}
	}
	return false
}

// begin does what can be done now for a unit with a spot: it starts the unit, or brings its
// images or memory to its nodes. Memory that moves in no time moves first; the whole unit resumes
// once the memory has arrived.
func (p *planner) begin(u *unit, at spot) {
	r, moves := u.request, u.moves(at)
	for i := range u.members {
		m, node := &u.members[i], at.nodes[i]
		name := p.nodes[node].name
		switch {
		case m.memory && node != m.node && m.vm.Phase == Suspended:
			p.act(Move, r, m.vm, name, p.now.Add(p.moveSeconds(r)), "It can resume on this host earlier than on the host that has its memory.")
		case at.start == p.now && moves: // it waits for the move
		case at.start == p.now && m.memory:
			p.act(Resume, r, m.vm, name, p.now.Add(u.lead), p.whyNow(u, at))
		case at.start == p.now:
			p.act(Start, r, m.vm, name, p.now.Add(u.lead), p.whyNow(u, at))
		case m.image && node != m.node:
			p.stage(u, m, node, at)
		}
	}
}

// stage sends the image of a member to its node, if it is not there.
func (p *planner) stage(u *unit, m *member, node int, at spot) {
	until := at.end
	if at.whole {
		until = at.start.Add(u.length())
	}
	there, transfer := p.images.send(u.request.Image, node, m.vm.ID, until)
	if transfer != nil {
		p.plan.Transfers = append(p.plan.Transfers, *transfer)
	}
	if there > p.now {
		p.act(Stage, u.request, m.vm, p.nodes[node].name, there, "Its image is not on its host.")
	}
}

// layOut reserves the places of a unit from its spot on, also for the time after a suspension,
// and returns when it ends at the latest.
func (p *planner) layOut(u *unit, at spot) span.Instant {
	p.pieces++
	if at.whole {
		end := at.start
		for i, m := range u.members {
			over := at.start.Add(plus(plus(u.lead, m.rest), u.stop))
			p.nodes[at.nodes[i]].host(u.request, span.Span{Start: at.start, End: over})
			end = max(end, over)
		}
		p.pieces = 0
		return end
	}
	ran := max(0, int64(at.end-at.start)-u.lead-u.suspend)
	left := make([]member, len(u.members))
	for i, m := range u.members {
		// A VM with only its shutdown left is suspended at once.
		over := min(at.end, at.start.Add(plus(plus(u.lead, m.rest), u.suspend)))
		p.nodes[at.nodes[i]].host(u.request, span.Span{Start: at.start, End: over})
		left[i] = member{vm: m.vm, node: at.nodes[i], at: at.end, rest: max(0, m.rest-ran), memory: true}
	}
	if p.pieces < mostPieces {
		rest := p.unit(u.request, left)
		if next, ok := p.find(rest, at.end); ok {
			return p.layOut(rest, next)
		}
	}
	p.pieces = 0
	return span.Forever
}

// wait notes what is expected of a unit that does not start now.
func (p *planner) wait(u *unit, at spot, end span.Instant) {
	if at.start == p.now && !at.late && !u.moves(at) {
		return
	}
	p.next(max(at.start, p.now.Add(1)))
	// Its image or its memory is brought early enough to be there when there is a place.
	p.next(at.start - (at.there - p.now))
	reason := p.whyNotNow(u, at)
	for i, m := range u.members {
		p.plan.Expected[m.vm.ID] = Expectation{
			Start: at.start, End: end, Node: p.nodes[at.nodes[i]].name, Position: p.position[u.request.ID], Reason: reason,
		}
	}
}

// never notes that a unit cannot start.
func (p *planner) never(u *unit) {
	if u.running {
		return
	}
	reason := "No host has room for it at any time."
	if u.ran && !p.rules.Migrate {
		reason = "The host that has its memory has no room for it at any time."
	}
	for _, m := range u.members {
		p.plan.Expected[m.vm.ID] = Expectation{Start: span.Forever, End: span.Forever, Position: p.position[u.request.ID], Reason: reason}
	}
}

// number numbers the requests that wait.
func (p *planner) number() {
	for _, u := range p.units {
		if !u.running && p.position[u.request.ID] == 0 {
			p.position[u.request.ID] = len(p.position) + 1
		}
	}
}

// whyNow returns why a unit starts, and what follows.
func (p *planner) whyNow(u *unit, at spot) string {
	if !at.whole {
		return fmt.Sprintf("It can run until a reservation at %v, and is suspended for it.", at.end)
	}
	if u.ran {
		return "There is room for it again."
	}
	return "There is room for it until it ends."
}

// whyNotNow returns what a unit waits for.
func (p *planner) whyNotNow(u *unit, at spot) string {
	switch {
	case at.late:
		return "It starts when the server that occupies its place has left."
	case at.start <= at.there && u.ran && len(u.members) == 1 && u.members[0].node == at.nodes[0] && u.members[0].vm.Phase == Suspending:
		return "It is being suspended."
	case at.start <= at.there && u.ran:
		return fmt.Sprintf("Its memory is where it can go on at %v.", at.there)
	case at.start <= at.there:
		return fmt.Sprintf("Its image is on its host at %v.", at.there)
	case p.roomNow(u):
		return "There is room for it now, but a reservation or an earlier request needs the room before it would end."
	default:
		return "The hosts are busy, or reserved."
	}
}

// roomNow reports whether all of a unit fits at this moment, for however short a time.
func (p *planner) roomNow(u *unit) bool {
	if u.ran && !p.rules.Migrate {
		for _, m := range u.members {
			if m.node < 0 || p.nodes[m.node].room(0, u.request.Shape, 1) == 0 {
				return false
			}
		}
		return true
	}
	return p.roomAt(u, p.now)
}
