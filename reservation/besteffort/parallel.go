// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// slots are so many places on a node from an instant on, for as long as they last.
type slots struct {
	node, n int
	until   span.Instant
	ender   int // the segment before which they end; -1 is none
	whole   bool
	fresh   bool // an image needs a new transfer to them
}

// drops returns the places, at most n, that a node has from the beginning of its segment i on,
// the longest first. It ignores what happens from end on, and overwrites all.
func (p *planner) drops(all []slots, index, i int, u *unit, n int, end span.Instant) []slots {
	node, shape := p.nodes[index], u.request.Shape
	all = all[:0]
	room := node.room(i, shape, n)
	for i++; room > 0 && i < len(node.segments) && node.segments[i].at < end; i++ {
		if left := node.room(i, shape, room); left < room {
			all = append(all, slots{node: index, n: room - left, until: node.segments[i].at, ender: i})
			room = left
		}
	}
	if room > 0 {
		all = append(all, slots{node: index, n: room, until: end, ender: -1, whole: true})
	}
	slices.Reverse(all)
	return all
}

// needed returns for how long a unit must have places that end as these do.
func (p *planner) needed(u *unit, s *slots) int64 {
	if s.ender >= 0 && p.rules.Suspend && p.nodes[s.node].suspends(s.ender, u.request.Place, u.request.Shape) {
		return min(u.least, u.length())
	}
	return u.length()
}

// steps adds when a node has places for VMs of a unit that start then: by how many the places change, and at
// which instant.
func (p *planner) steps(all *agenda, index int, u *unit, from span.Instant, n int) {
	node := p.nodes[index]
	for i := node.index(from); i < len(node.segments); i++ {
		start, end := max(from, node.segments[i].at), span.Forever
		if i+1 < len(node.segments) {
			end = node.segments[i+1].at
		}
		last := span.Forever
		p.scratch = p.drops(p.scratch, index, i, u, n, end.Add(u.length()))
		for _, s := range p.scratch {
			if s.ender >= 0 {
				last = min(last, s.until-span.Instant(p.needed(u, &s)))
			}
			if last < start {
				break
			}
			all.add(entry{at: start, n: s.n})
			if gone := min(last.Add(1), end); gone != span.Forever {
				all.add(entry{at: gone, n: -s.n})
			}
		}
	}
}

// reach returns when the first member of a unit could start on a node, as far as its image or its
// memory allows; own is how many members are there already.
func (p *planner) reach(u *unit, node int) (at span.Instant, own int) {
	at = span.Forever
	for i := range u.members {
		m := &u.members[i]
		if m.node == node {
			own++
			at = min(at, m.at)
		}
	}
	if m := p.mover(u); m != nil {
		elsewhere := *m
		elsewhere.node = -1
		there, _ := p.arrivalOf(u, &elsewhere, node)
		at = min(at, there)
	}
	return at, own
}

// mover returns the member that can move to another node first; nil where none can.
func (p *planner) mover(u *unit) *member {
	var first *member
	for i := range u.members {
		m := &u.members[i]
		if m.memory && !p.rules.Migrate {
			continue
		}
		if first == nil || !m.memory && first.memory || m.memory == first.memory && m.at < first.at {
			first = m
		}
	}
	return first
}

// findAll is find for VMs that start together.
func (p *planner) findAll(u *unit, from span.Instant) (spot, bool) {
	var found spot
	var later span.Instant
	var ok bool
	if p.roomAt(u, from) {
		if found, later, ok = p.choose(u, from); ok {
			return found, true
		}
	}
	all := p.sweep(u, from)
	defer all.end()
	for places, at := 0, from; ; {
		switch next, more := all.next(); {
		case later > at && (!more || later < next):
			at = later
		case more:
			at = next
		default:
			return spot{}, false
		}
		if places += all.pass(at); places < len(u.members) {
			continue
		}
		var wanted span.Instant
		if found, wanted, ok = p.choose(u, at); ok {
			return found, true
		}
		if wanted > at {
			later = wanted
		}
	}
}

// roomAt reports whether all of a unit fits at an instant, on any nodes and for however short a
// time.
func (p *planner) roomAt(u *unit, at span.Instant) bool {
	n := len(u.members)
	look := func(i int) bool {
		if node := p.nodes[i]; n > 0 && node.listed {
			n -= node.room(node.index(at), u.request.Shape, n)
		}
		return n > 0
	}
	if o := p.openings(u.request.Shape, 1, 1); o != nil {
		o.until(at, look)
		return n <= 0
	}
	for i := 0; i < len(p.nodes) && look(i); i++ {
	}
	return n <= 0
}

// earliest is reach; it searches the members only where one of them is on the node.
func (p *planner) earliest(u *unit, node int, owner bool) (span.Instant, int) {
	if owner {
		return p.reach(u, node)
	}
	m := p.mover(u)
	elsewhere := *m
	elsewhere.node = -1
	at, _ := p.arrivalOf(u, &elsewhere, node)
	return at, 0
}

// choose returns the nodes on which a unit can start at an instant. Where only an image or memory
// on its way is missing, it returns when that arrives.
func (p *planner) choose(u *unit, at span.Instant) (found spot, later span.Instant, ok bool) {
	c := chosen{planner: p, unit: u, at: at, byNode: map[int][]slots{}, spot: spot{start: at, end: span.Forever, whole: true, nodes: make([]int, len(u.members))}}
	var rest []int
	for i := range u.members {
		m := &u.members[i]
		if m.node >= 0 && m.at <= at && c.stay(i) {
			continue
		}
		if m.memory && !p.rules.Migrate {
			return spot{}, m.at, false
		}
		rest = append(rest, i)
	}
	if len(rest) > 0 && !c.spread(rest) {
		return spot{}, c.later, false
	}
	return c.spot, 0, true
}

// chosen is what was chosen for a unit so far.
type chosen struct {
	*planner
	unit   *unit
	at     span.Instant
	byNode map[int][]slots // of the nodes whose places were looked up
	spot   spot
	later  span.Instant
	sent   map[int]int64 // seconds that a new transfer to a node waits for earlier ones
	fresh  int64         // new transfers so far
}

// behind returns how many seconds the image of a member waits for those of earlier members.
func (c *chosen) behind(node int) int64 {
	if wait, sent := c.sent[node]; sent && c.images.queue.Avoid {
		return wait
	}
	if c.sent == nil {
		c.sent = map[int]int64{}
	}
	c.sent[node] = c.fresh * c.images.seconds(c.unit.request.Image, node)
	c.fresh++
	return c.sent[node]
}

// places returns the free places of a node.
func (c *chosen) places(node int) []slots {
	if all, known := c.byNode[node]; known {
		return all
	}
	p := c.nodes[node]
	if !p.listed {
		return nil
	}
	all := c.drops(nil, node, p.index(c.at), c.unit, len(c.unit.members), c.at.Add(c.unit.length()))
	for i := range all {
		if s := &all[i]; !s.whole && s.until < c.at.Add(c.needed(c.unit, s)) {
			all = all[:i] // nor may those that end before
			break
		}
	}
	c.byNode[node] = all
	return all
}

// put puts a member on the first of the places of a node.
func (c *chosen) put(i, node int) {
	left := c.places(node)
	s := &left[0]
	if !s.whole {
		c.spot.whole = false
	}
	c.spot.end = min(c.spot.end, s.until)
	c.spot.nodes[i] = node
	if s.n--; s.n == 0 {
		left = left[1:]
	}
	c.byNode[node] = left
	c.spot.there = max(c.spot.there, c.now)
}

// stay leaves a member where it is, if there is a place.
func (c *chosen) stay(i int) bool {
	m := &c.unit.members[i]
	if len(c.places(m.node)) == 0 {
		return false
	}
	c.put(i, m.node)
	c.spot.there = max(c.spot.there, m.at)
	return true
}

// spread finds places for the other members.
func (c *chosen) spread(rest []int) bool {
	m := c.unit.members[rest[0]]
	m.node = -1
	var all []slots
	ideal := 0
	c.eachOpen(&m, func(node int) bool {
		at, fresh := c.arrivalOf(c.unit, &m, node)
		if at == span.Forever {
			return true
		}
		if at > c.at {
			c.later = later(c.later, at)
			return true
		}
		for _, s := range c.places(node) {
			s.fresh = fresh
			all = append(all, s)
			if s.whole && !fresh {
				ideal += s.n
			}
		}
		return ideal < len(rest) // all others are no better
	})
	slices.SortStableFunc(all, func(a, b slots) int {
		return cmp.Or(yesFirst(a.whole, b.whole), yesFirst(b.fresh, a.fresh), cmp.Compare(b.until, a.until))
	})
	for _, s := range all {
		for range s.n {
			if len(rest) == 0 {
				return true
			}
			if !c.fits(rest[0], s) {
				return false
			}
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

// eachOpen calls look with the nodes on which a member may start, in their order, until look returns false:
// all nodes, if it matters when an image or memory can be there.
func (c *chosen) eachOpen(m *member, look func(node int) bool) {
	if o := c.openingsOf(c.unit); o != nil && !m.image && !m.memory {
		o.until(c.at, look)
		return
	}
	for node := 0; node < len(c.nodes) && look(node); node++ {
	}
}

// fits puts a member on a place, if its image or its memory is there by then.
func (c *chosen) fits(i int, s slots) bool {
	m := c.unit.members[i]
	m.node = -1 // it did not stay
	at, _ := c.arrivalOf(c.unit, &m, s.node)
	if m.image && s.fresh {
		at = at.Add(c.behind(s.node))
	}
	if at > c.at {
		c.later = at
		return false
	}
	c.put(i, s.node)
	c.spot.there = max(c.spot.there, at)
	return true
}

// later returns the earlier of two instants; 0 stands for none.
func later(a, b span.Instant) span.Instant {
	if a == 0 {
		return b
	}
	return min(a, b)
}
