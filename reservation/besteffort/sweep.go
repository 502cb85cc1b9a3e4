// SPDX-License-Identifier: Apache-2.0

package besteffort

import "github.com/almanac-cloud/almanac/pkg/span"

// sweep goes through the steps of all nodes on which members of a unit can start, in the order of time. A node
// is looked at when the sweep comes to its opening.
type sweep struct {
	*planner
	unit   *unit
	from   span.Instant
	only   bool         // the members start on the nodes where they are, and on no other
	owners map[int]bool // the nodes where members are
	rest   *upcoming    // the nodes that were not looked at yet; nil if there are none
	ahead  agenda       // the steps, by how many places
}

// sweep returns the sweep of a unit from an instant on.
func (p *planner) sweep(u *unit, from span.Instant) *sweep {
	s := &sweep{planner: p, unit: u, from: from, only: p.mover(u) == nil, owners: map[int]bool{}, ahead: p.ahead[:0]}
	// Members that reach a node later than others add no places, but may make a start possible.
	for _, m := range u.members {
		s.ahead.add(entry{at: max(from, m.at)})
		if m.memory && p.rules.Migrate {
			s.ahead.add(entry{at: max(from, m.at.Add(p.moveSeconds(u.request)))})
		}
		if m.node >= 0 {
			s.owners[m.node] = true
		}
	}
	if o := p.openingsOf(u); s.only {
		for node := range s.owners {
			s.look(node)
		}
	} else if o != nil {
		s.rest = o.upcoming(from, p.parts)
	} else {
		for node := range p.nodes {
			s.look(node)
		}
	}
	return s
}

// end keeps the memory for the next sweep.
func (s *sweep) end() {
	s.planner.ahead = s.ahead
	if s.rest != nil {
		s.parts = s.rest.parts
	}
}

// look adds the steps of a node.
func (s *sweep) look(node int) {
	if !s.nodes[node].listed {
		return
	}
	at, most := s.earliest(s.unit, node, s.owners[node])
	if at == span.Forever {
		return
	}
	if !s.only {
		most = len(s.unit.members)
	}
	s.steps(&s.ahead, node, s.unit, max(s.from, at), most)
}

// next returns the instant of the next step; false if there is none.
func (s *sweep) next() (span.Instant, bool) {
	for s.rest != nil {
		node, opens, ok := s.rest.next()
		if !ok {
			s.rest = nil
			break
		}
		if len(s.ahead) > 0 && s.ahead[0].at < opens {
			break
		}
		s.look(node)
		s.rest.skip()
	}
	if len(s.ahead) == 0 {
		return span.Forever, false
	}
	return s.ahead[0].at, true
}

// pass goes on beyond an instant, and returns by how many the places change until then.
func (s *sweep) pass(at span.Instant) (by int) {
	for len(s.ahead) > 0 && s.ahead[0].at <= at {
		by += s.ahead.remove().n
	}
	return by
}
