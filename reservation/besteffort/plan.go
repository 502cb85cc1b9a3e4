package besteffort

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Plan decides what is done now. Of a Parallel request all virtual machines do the same at
// the same time. It gives the same for the same situation, whatever the order of Holds and
// Requests.
//
// What is on the nodes comes first: whoever has to leave for a reservation leaves, the
// youngest first where not all must. Then the queue is gone through in its order. Each takes
// the earliest start that those before it leave, and begins if that is now; else it is
// promised that start, by what Backfilling says, and those behind it may not have what it
// takes. What was suspended, or will be, is always promised its resumption. With Backfilling
// None, nobody behind one that has to wait begins anything. What can never start, by the
// nodes there are, keeps nobody waiting.
func (r Rules) Plan(s Situation) Plan {
	p := newPlanner(r, s)
	p.keep()
	p.decide()
	p.expect()
	return p.plan
}

// planner makes one plan.
type planner struct {
	rules    Rules
	now      span.Instant
	requests []*Request
	nodes    []*profile
	byName   map[string]int
	images   *arrivals
	units    []*unit // of the queue
	later    []*unit // those that wait, and are promised nothing
	// position is the place of requests among those that wait.
	position map[string]int
	plan     Plan
	scratch  []slots
	pieces   int // of the unit that is laid out
}

// mostPieces is into how many pieces a unit is laid out; the end of one that takes more is
// not known.
const mostPieces = 32

func newPlanner(r Rules, s Situation) *planner {
	p := &planner{
		rules: r, now: s.Now, requests: sorted(s.Requests), byName: make(map[string]int, len(s.Nodes)), position: map[string]int{},
		plan: Plan{Expected: map[string]Expectation{}, Next: span.Forever},
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
	p.images = &arrivals{now: p.now, queue: s.Images, nodes: p.nodes, images: map[string]*arrival{}}
	for _, h := range s.Holds {
		h.Span.Start = max(h.Span.Start, p.now)
		if i, known := p.byName[h.Node]; known && !h.Span.Empty() {
			p.nodes[i].hold(h.Span, h.Resources)
			p.next(h.Span.End)
		}
	}
	return p
}

// node gives the profile of a node, which is made where it is not known.
func (p *planner) node(name string, listed bool) *profile {
	i, known := p.byName[name]
	if !known {
		i = len(p.nodes)
		p.byName[name] = i
		p.nodes = append(p.nodes, &profile{name: name, listed: listed, segments: []segment{{at: p.now}}})
	}
	return p.nodes[i]
}

// next says that something is due then.
func (p *planner) next(at span.Instant) {
	if at > p.now {
		p.plan.Next = min(p.plan.Next, at)
	}
}

// act enters what is done to a virtual machine now.
func (p *planner) act(action Action, r *Request, vm *VM, node string, until span.Instant, reason string) {
	p.plan.Acts = append(p.plan.Acts, Act{Action: action, Request: r.ID, VM: vm.ID, Node: node, Until: until, Reason: reason})
	p.next(until)
}

// decide goes through the queue, and begins what can begin.
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
			blocked = true
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

// mustWait says, at little cost, that a unit cannot begin now and is promised nothing.
func (p *planner) mustWait(u *unit) bool {
	return p.rules.Backfilling != None && !u.running && !u.ran && u.request.Image.ID == "" && !p.roomAt(u, p.now)
}

// expect says when those can start that are promised nothing.
func (p *planner) expect() {
	from := p.now
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

// stillTaken says that a unit could start now but for those that are just being ended.
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

// begin does what can be done now for a unit that has its spot: it starts, or what it needs
// is brought to its nodes. Where that is memory which is moved in no time, it comes first, and
// all of the unit is resumed once it is seen to be there.
func (p *planner) begin(u *unit, at spot) {
	o, r := p.rules.Overheads, u.request
	moves := u.moves(at)
	for i := range u.members {
		m, node := &u.members[i], at.nodes[i]
		name := p.nodes[node].name
		switch {
		case m.memory && node != m.node && m.vm.Phase == Suspended:
			p.act(Move, r, m.vm, name, p.now.Add(o.move(r.Shape.MemoryMB)), "It can go on there before it can where its memory is.")
		case at.start == p.now && moves: // it waits for those
		case at.start == p.now && m.memory:
			p.act(Resume, r, m.vm, name, p.now.Add(u.lead), p.whyNow(u, at))
		case at.start == p.now:
			p.act(Start, r, m.vm, name, p.now.Add(u.lead), p.whyNow(u, at))
		case m.image && node != m.node:
			p.stage(u, m, node, at)
		}
	}
}

// stage has the image of a member sent to its node, if it is not there.
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
		p.act(Stage, u.request, m.vm, p.nodes[node].name, there, "Its image is not on its node.")
	}
}

// layOut takes what a unit has from its spot on, with what it has after it was suspended,
// and gives when it ends at the latest.
func (p *planner) layOut(u *unit, at spot) span.Instant {
	p.pieces++
	shape := u.request.Shape
	if at.whole {
		end := at.start
		for i, m := range u.members {
			over := at.start.Add(plus(plus(u.lead, m.rest), u.stop))
			p.nodes[at.nodes[i]].take(span.Span{Start: at.start, End: over}, shape)
			end = max(end, over)
		}
		p.pieces = 0
		return end
	}
	ran := max(0, int64(at.end-at.start)-u.lead-u.suspend)
	left := make([]member, len(u.members))
	for i, m := range u.members {
		p.nodes[at.nodes[i]].take(span.Span{Start: at.start, End: at.end}, shape)
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

// wait says what is expected of a unit that does not start now.
func (p *planner) wait(u *unit, at spot, end span.Instant) {
	if at.start == p.now && !at.late && !u.moves(at) {
		return
	}
	p.next(max(at.start, p.now.Add(1)))
	// Then what it needs is brought, so that it is there when there is room.
	p.next(at.start - (at.there - p.now))
	reason := p.whyNotNow(u, at)
	for i, m := range u.members {
		p.plan.Expected[m.vm.ID] = Expectation{
			Start: at.start, End: end, Node: p.nodes[at.nodes[i]].name, Position: p.position[u.request.ID], Reason: reason,
		}
	}
}

// never says that a unit cannot start.
func (p *planner) never(u *unit) {
	if u.running {
		return
	}
	reason := "No node has room for it at any time."
	if u.ran && !p.rules.Migrate {
		reason = "The node that has its memory has no room for it at any time."
	}
	for _, m := range u.members {
		p.plan.Expected[m.vm.ID] = Expectation{Start: span.Forever, End: span.Forever, Position: p.position[u.request.ID], Reason: reason}
	}
}

// enqueue puts the units into the order of the queue, and numbers the requests.
func (p *planner) enqueue() {
	order := make(map[*Request]int, len(p.requests))
	for i, r := range p.requests {
		order[r] = i
	}
	slices.SortStableFunc(p.units, func(a, b *unit) int {
		return cmp.Compare(order[a.request], order[b.request])
	})
	for _, u := range p.units {
		if !u.running && p.position[u.request.ID] == 0 {
			p.position[u.request.ID] = len(p.position) + 1
		}
	}
}
