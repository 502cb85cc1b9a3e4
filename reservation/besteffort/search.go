// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"cmp"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// spot is where and when a unit can start.
type spot struct {
	start span.Instant
	// end is when a reservation needs its nodes, if the unit has to be suspended for it; whole
	// reports that it has not.
	end   span.Instant
	whole bool
	nodes []int // by member
	// there is when all that it needs can be on its nodes; a later start waits for nothing else.
	there span.Instant
	late  bool // the VM in its place is being ended
}

// find returns the earliest spot of a unit from an instant on; false means never.
func (p *planner) find(u *unit, from span.Instant) (spot, bool) {
	if len(u.members) == 1 {
		return p.findOne(u, from)
	}
	return p.findAll(u, from)
}

// arrivalOf returns when a member can start on a node: when its image is there, which may need a
// new transfer, or its memory. Forever means never.
func (p *planner) arrivalOf(u *unit, m *member, node int) (at span.Instant, fresh bool) {
	switch {
	case m.node == node:
		if m.image && m.at > p.now {
			if at, fresh := p.images.ready(u.request.Image, node); !fresh {
				return min(at, m.at), false
			}
		}
		return m.at, false
	case m.memory && !p.rules.Migrate:
		return span.Forever, false
	case m.memory:
		return m.at.Add(p.moveSeconds(u.request)), false
	case m.image:
		return p.images.ready(u.request.Image, node)
	}
	return p.now, false
}

// candidate is a spot of a single VM.
type candidate struct {
	spot
	node  int
	stays bool // the VM is there already
	fresh bool // its image needs a new transfer
}

// better reports whether a node is better than another: an earlier start, then where the VM
// already is, then without a suspension, then without a transfer of the image, then for the
// longest time, then the first node.
func (c *candidate) better(o *candidate) bool {
	order := cmp.Or(cmp.Compare(c.start, o.start), yesFirst(c.stays, o.stays), yesFirst(c.whole, o.whole), yesFirst(o.fresh, c.fresh))
	if order == 0 && !c.whole {
		order = cmp.Compare(o.end, c.end)
	}
	return cmp.Or(order, cmp.Compare(c.node, o.node)) < 0
}

// yesFirst sorts true before false.
func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// findOne is find for a single VM. Of equal nodes it takes the one with the VM, then the first.
func (p *planner) findOne(u *unit, from span.Instant) (spot, bool) {
	m := &u.members[0]
	var best candidate
	found := false
	try := func(node int) {
		c := candidate{node: node, stays: node == m.node}
		if !p.nodes[node].listed {
			return
		}
		c.there, c.fresh = p.arrivalOf(u, m, node)
		earliest := max(from, c.there)
		if found && earliest > best.start || c.there == span.Forever {
			return
		}
		var ok bool
		if c.start, c.end, c.whole, ok = p.first(p.nodes[node], u, earliest); ok && (!found || c.better(&best)) {
			best, found = c, true
		}
	}
	if m.node >= 0 {
		try(m.node)
	}
	if !m.memory || p.rules.Migrate {
		p.eachNode(u, from, func(node int, opens span.Instant) bool {
			switch {
			case !found:
			case opens > best.start: // as are the next ones
				return false
			case opens == best.start && best.whole && !best.fresh && (best.stays || best.node < node):
				return false // the others are later, or equal
			}
			if node != m.node {
				try(node)
			}
			return true
		})
	}
	best.nodes = []int{best.node}
	return best.spot, found
}

// eachNode calls look with the nodes on which a VM of a unit may start from an instant on, and an instant
// before which it cannot start there, until look returns false. The instants ascend; the nodes of
// one instant are in order.
func (p *planner) eachNode(u *unit, from span.Instant, look func(node int, opens span.Instant) bool) {
	o := p.openingsOf(u)
	if o == nil {
		for node := range p.nodes {
			if !look(node, from) {
				return
			}
		}
		return
	}
	next := o.upcoming(from, p.parts)
	defer func() { p.parts = next.parts }()
	for ; ; next.skip() {
		node, opens, ok := next.next()
		if !ok || !look(node, opens) {
			return
		}
	}
}

// first returns the first spot of a single VM on a node.
func (p *planner) first(node *profile, u *unit, from span.Instant) (start, end span.Instant, whole, ok bool) {
	shape, length := u.request.Shape, u.length()
	for i := node.index(from); i < len(node.segments); {
		start = max(from, node.segments[i].at)
		if start == span.Forever {
			break
		}
		until, ender := node.lasts(start, start.Add(length), shape, 1)
		if ender < 0 {
			return start, until, true, true
		}
		if until > start && p.mayBeSuspended(node, u, start, until, ender) {
			return start, until, false, true
		}
		i = ender + 1
	}
	return 0, 0, false, false
}

// mayBeSuspended reports whether a unit may start although it will have to leave the node.
func (p *planner) mayBeSuspended(node *profile, u *unit, start, until span.Instant, ender int) bool {
	return p.rules.Suspend && until >= start.Add(u.least) && node.suspends(ender, u.request.Place, u.request.Shape)
}
