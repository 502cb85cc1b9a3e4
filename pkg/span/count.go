// SPDX-License-Identifier: Apache-2.0

package span

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Count is how many of something there are at each instant. It is an immutable value: Add returns
// another Count that shares what is the same. The zero Count has none at any instant. Two Counts
// that agree at every instant have equal contents.
//
// It is a treap over the instants at which the count changes. The priority of an instant is a hash
// of it, so the shape depends on the instants alone; Add, At and Most take time logarithmic in
// their number.
type Count struct{ root *turn }

// turn is an instant at which the count changes, and a node of the tree of these instants.
type turn struct {
	at     Instant
	change int // never 0
	// sum is the sum of all changes in the subtree; most is the highest sum of the first one or
	// more of them.
	sum, most   int
	left, right *turn
}

// Add returns the count with n more throughout s; n may be negative. An empty s changes
// nothing.
func (c Count) Add(s Span, n int) Count {
	if s.Empty() || n == 0 {
		return c
	}
	return Count{c.root.add(s.Start, n).add(s.End, -n)}
}

// CountOf returns the sum of parts, as if each of them was added to the zero Count, in the time that
// sorting their instants takes.
func CountOf(parts iter.Seq2[Span, int]) Count {
	type change struct {
		at Instant
		by int
	}
	var list []change
	for s, n := range parts {
		if !s.Empty() {
			list = append(list, change{s.Start, n}, change{s.End, -n})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var spine []*turn // from the root to the right
	for i := 0; i < len(list); {
		n := &turn{at: list[i].at}
		for ; i < len(list) && list[i].at == n.at; i++ {
			n.change += list[i].by
		}
		if n.change == 0 {
			continue
		}
		for ; len(spine) > 0 && priority(spine[len(spine)-1].at) < priority(n.at); spine = spine[:len(spine)-1] {
			n.left = spine[len(spine)-1]
		}
		if len(spine) > 0 {
			spine[len(spine)-1].right = n
		}
		spine = append(spine, n)
	}
	if len(spine) == 0 {
		return Count{}
	}
	spine[0].sumAll()
	return Count{spine[0]}
}

// IsZero reports whether the count is 0 at every instant.
func (c Count) IsZero() bool { return c.root == nil }

// At returns the count at t.
func (c Count) At(t Instant) int {
	sum := 0
	for n := c.root; n != nil; {
		if t < n.at {
			n = n.left
			continue
		}
		sum += n.left.total() + n.change
		n = n.right
	}
	return sum
}

// Most returns the highest count at any instant of s; 0 if s is empty.
func (c Count) Most(s Span) int {
	if s.Empty() {
		return 0
	}
	return max(c.At(s.Start), c.root.mostWithin(s, 0, false, false))
}

// Steps iterates over the parts of s with a constant count, in order, each with its count.
// Neighbors differ.
func (c Count) Steps(s Span) iter.Seq2[Span, int] {
	return func(yield func(Span, int) bool) {
		if s.Empty() {
			return
		}
		begin, level := s.Start, c.At(s.Start)
		more := c.root.walk(s, func(n *turn) bool {
			part, was := Span{begin, n.at}, level
			begin, level = n.at, level+n.change
			return yield(part, was)
		})
		if more {
			yield(Span{begin, s.End}, level)
		}
	}
}

// AtMost returns the maximal parts of s, in order, in which the count is at most n.
func (c Count) AtMost(n int, s Span) []Span {
	var parts []Span
	for part, level := range c.Steps(s) {
		last := len(parts) - 1
		switch {
		case level > n:
		case last >= 0 && parts[last].End == part.Start:
			parts[last].End = part.End
		default:
			parts = append(parts, part)
		}
	}
	return parts
}

// walk visits the instants between s.Start and s.End at which the count changes, in order, until
// visit returns false, and reports whether it visited all. s.Start and s.End are not among them.
func (n *turn) walk(s Span, visit func(n *turn) bool) bool {
	switch {
	case n == nil:
		return true
	case n.at <= s.Start:
		return n.right.walk(s, visit)
	case n.at >= s.End:
		return n.left.walk(s, visit)
	}
	return n.left.walk(s, visit) && visit(n) && n.right.walk(s, visit)
}

// mostWithin returns the highest count right after one of the subtree's instants that are after
// s.Start and before s.End; math.MinInt if there is none. before is the count before the first
// instant of the subtree. after is true if all its instants are known to be after s.Start, until if
// all are before s.End.
func (n *turn) mostWithin(s Span, before int, after, until bool) int {
	switch {
	case n == nil:
		return math.MinInt
	case after && until:
		return before + n.most
	case n.at >= s.End:
		return n.left.mostWithin(s, before, after, until)
	}
	level := before + n.left.total() + n.change
	most := n.right.mostWithin(s, level, after || n.at >= s.Start, until)
	if n.at <= s.Start {
		return most
	}
	return max(level, most, n.left.mostWithin(s, before, after, true))
}

// total returns the sum of a subtree; 0 for nil.
func (n *turn) total() int {
	if n == nil {
		return 0
	}
	return n.sum
}

// join returns the tree of left, one instant after it, and right.
func join(left *turn, at Instant, change int, right *turn) *turn {
	n := &turn{at: at, change: change, left: left, right: right}
	n.sumUp()
	return n
}

// sumUp computes the sums of n from those of the trees below it.
func (n *turn) sumUp() {
	here := n.left.total() + n.change
	n.sum, n.most = here+n.right.total(), here
	if n.left != nil {
		n.most = max(n.most, n.left.most)
	}
	if n.right != nil {
		n.most = max(n.most, here+n.right.most)
	}
}

// sumAll computes the sums of a whole tree.
func (n *turn) sumAll() {
	if n != nil {
		n.left.sumAll()
		n.right.sumAll()
		n.sumUp()
	}
}

// add returns the tree with another change at an instant.
func (n *turn) add(at Instant, change int) *turn {
	switch {
	case n == nil:
		return join(nil, at, change, nil)
	case at == n.at && n.change+change == 0:
		return merge(n.left, n.right)
	case at == n.at:
		return join(n.left, at, n.change+change, n.right)
	case priority(at) > priority(n.at): // n has the highest priority below it, so it does not contain at
		left, right := n.split(at)
		return join(left, at, change, right)
	case at < n.at:
		return join(n.left.add(at, change), n.at, n.change, n.right)
	default:
		return join(n.left, n.at, n.change, n.right.add(at, change))
	}
}

// split returns the tree of the instants before at, and that of the instants after it.
func (n *turn) split(at Instant) (left, right *turn) {
	switch {
	case n == nil:
		return nil, nil
	case n.at < at:
		left, right = n.right.split(at)
		return join(n.left, n.at, n.change, left), right
	default:
		left, right = n.left.split(at)
		return left, join(right, n.at, n.change, n.right)
	}
}

// merge returns one tree of two; the instants of left precede those of right.
func merge(left, right *turn) *turn {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case priority(left.at) > priority(right.at):
		return join(left.left, left.at, left.change, merge(left.right, right))
	default:
		return join(merge(left, right.left), right.at, right.change, right.right)
	}
}

// priority spreads instants evenly and is different for any two: it is the finalizer of
// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014),
// whose steps are all invertible.
func priority(at Instant) uint64 {
	z := uint64(at) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
