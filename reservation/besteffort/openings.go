// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// openings finds the nodes on which a VM of a shape has room soon, so that a search need not look at
// all nodes. It has, for each node, an instant before which no place begins that lasts for so many
// seconds. A plan only ever takes room, so that such an instant stays true while the node changes; it
// is computed again when a search comes across it.
//
// The instants are the leaves of a tree in which each inner node has the least of its two children.
type openings struct {
	nodes []*profile
	openingsKey
	shape  resource.Vector
	leaves int            // a power of 2, at least the number of nodes
	first  []span.Instant // the root is 1, the children of i are 2i and 2i+1, the leaf of node n is leaves+n
	seen   []int          // by node: its changes when its leaf was computed
}

// openingsKey is for which places openings are.
type openingsKey struct {
	vcpus, memoryMB, diskGB int64
	custom                  string
	// A place lasts for so many seconds, or for the least number if a VM is suspended at its end.
	seconds, least int64
}

// mostOpenings bounds how many a plan has. Further shapes are searched for on all nodes.
const mostOpenings = 64

// openingsOf returns the openings for the places of a unit, or for shorter ones, so that many units share
// them; nil where a search has to look at all nodes.
func (p *planner) openingsOf(u *unit) *openings {
	length := u.length()
	if p.rules.Suspend {
		return p.openings(u.request.Shape, length, min(length, u.least))
	}
	return p.openings(u.request.Shape, length, length)
}

// openings returns the index of the first openings for a shape and a time; nil if a search without it is
// as good.
func (p *planner) openings(shape resource.Vector, seconds, least int64) *openings {
	if least <= 0 || p.thorough {
		return nil
	}
	key := openingsKey{shape.VCPUs, shape.MemoryMB, shape.DiskGB, "", powerOf2(seconds), powerOf2(least)}
	for _, class := range slices.Sorted(maps.Keys(shape.Custom)) {
		key.custom += fmt.Sprintf("%s=%d ", class, shape.Custom[class])
	}
	o := p.byShape[key]
	if o == nil && len(p.byShape) < mostOpenings {
		o = newOpenings(p.nodes, shape, key)
		p.byShape[key] = o
	}
	return o
}

// powerOf2 rounds down to a power of 2.
func powerOf2(n int64) int64 { return 1 << (bits.Len64(uint64(n)) - 1) }

// newOpenings returns a tree over the nodes with the first opening of each for the shape.
func newOpenings(nodes []*profile, shape resource.Vector, key openingsKey) *openings {
	leaves := 1
	for leaves < len(nodes) {
		leaves *= 2
	}
	o := &openings{nodes: nodes, openingsKey: key, shape: shape, leaves: leaves, first: make([]span.Instant, 2*leaves), seen: make([]int, len(nodes))}
	for i := range o.first {
		o.first[i] = span.Forever
	}
	for n := range nodes {
		o.first[leaves+n], o.seen[n] = o.opening(n), nodes[n].changes
	}
	for i := leaves - 1; i > 0; i-- {
		o.first[i] = min(o.first[2*i], o.first[2*i+1])
	}
	return o
}

// opening returns the first instant from which a node has room for long enough; span.Forever where
// there is none.
func (o *openings) opening(n int) span.Instant {
	node := o.nodes[n]
	if !node.listed {
		return span.Forever
	}
	begin := span.Forever
	for i := range node.segments {
		s := &node.segments[i]
		switch {
		case begin != span.Forever && s.at >= begin.Add(o.seconds):
			return begin
		case node.room(i, o.shape, 1) > 0:
			begin = min(begin, s.at)
		case begin != span.Forever && s.at >= begin.Add(o.least) && s.hold:
			return begin
		default:
			begin = span.Forever
		}
	}
	return begin
}

// renewed computes the leaf of a node again if the node has changed, and reports whether the leaf is
// later now.
func (o *openings) renewed(n int) bool {
	if o.seen[n] == o.nodes[n].changes {
		return false
	}
	i := o.leaves + n
	was := o.first[i]
	o.first[i], o.seen[n] = o.opening(n), o.nodes[n].changes
	for i > 1 {
		i /= 2
		o.first[i] = min(o.first[2*i], o.first[2*i+1])
	}
	return o.first[o.leaves+n] > was
}

// until calls look with the nodes that may have a place at an instant, in their order, until look returns
// false.
func (o *openings) until(at span.Instant, look func(node int) bool) { o.below(1, at, look) }

// below is until for the nodes below i; it reports whether look wants more.
func (o *openings) below(i int, at span.Instant, look func(node int) bool) bool {
	if o.first[i] > at {
		return true
	}
	if i < o.leaves {
		return o.below(2*i, at, look) && o.below(2*i+1, at, look)
	}
	n := i - o.leaves
	if n >= len(o.nodes) || o.renewed(n) && o.first[i] > at {
		return true
	}
	return look(n)
}

// upcoming goes through the nodes by their openings, the earliest first, and then in their order.
// Openings before from count as from.
type upcoming struct {
	*openings
	from  span.Instant
	parts agenda // of the tree, each with its first node
}

// upcoming returns the nodes from an instant on. It uses the memory of parts.
func (o *openings) upcoming(from span.Instant, parts agenda) *upcoming {
	u := &upcoming{openings: o, from: from, parts: parts[:0]}
	u.add(1)
	return u
}

// add adds the part of the tree below i, if a node in it ever has a place.
func (u *upcoming) add(i int) {
	if u.first[i] == span.Forever {
		return
	}
	level := bits.Len(uint(u.leaves)) - bits.Len(uint(i))
	u.parts.add(entry{max(u.from, u.first[i]), i<<level - u.leaves, i})
}

// next returns the node that is next, which remains the next one, and its opening; false if there is
// none.
func (u *upcoming) next() (node int, at span.Instant, ok bool) {
	for len(u.parts) > 0 {
		top := u.parts[0]
		if top.part >= u.leaves && !u.renewed(top.n) {
			return top.n, top.at, true
		}
		u.parts.remove()
		if top.part >= u.leaves {
			u.add(top.part)
		} else {
			u.add(2 * top.part)
			u.add(2*top.part + 1)
		}
	}
	return 0, 0, false
}

// skip goes on to the node after the next one.
func (u *upcoming) skip() { u.parts.remove() }
