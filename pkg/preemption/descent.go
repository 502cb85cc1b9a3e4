// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"slices"
)

// descent is the depth-first search over the items.
type descent struct {
	has, hasNot bits    // the items decided beforehand: in the set, and not in the set
	order       []int   // the other items
	left        []int64 // by depth and dimension: what is lacking
	rest        []int64 // by depth and dimension: what all items from this depth on free
	most        []int64 // by dimension: the most that one item frees
	in, out     bits
	any         bool // stop at the first set below bar
	nodes       int
	effort      int // maximum of nodes
}

// The largest numbers of nodes that a search visits: some milliseconds for victims, and less for
// costs, which are computed for many hosts.
const (
	victimsEffort = 1 << 16
	costsEffort   = 1 << 13
)

// firstOfEquals finds, among the sets with the price of the set that best found, the one with the
// smallest IDs. For one item after the other, it checks whether such a set contains the item
// together with the items decided before.
func (s *search) firstOfEquals() {
	if s.nodes > s.effort {
		return // best may have missed a better set
	}
	s.lower(s.bar + 1)
	s.nodes, s.any = 0, true
	for i := range s.items {
		s.has.add(i)
		if s.set.has(i) || s.possible() {
			continue
		}
		s.has.drop(i)
		s.hasNot.add(i)
	}
	s.any = false
}

// possible reports whether there is a set below bar that contains has and omits hasNot.
func (s *search) possible() bool {
	left := s.sum
	copy(left, s.lacks)
	s.open, s.paid = s.open[:0], 0
	for i := range s.items {
		it := &s.items[i]
		switch {
		case s.has.has(i):
			if it.better.meets(s.hasNot) {
				return false
			}
			subtract(left, it.gives)
			s.paid += it.price
		case !s.hasNot.has(i) && !it.better.meets(s.hasNot):
			s.open = append(s.open, i)
		}
	}
	for d, lack := range s.lacks {
		s.parts[d] = max(0, float64(left[d])/float64(lack))
	}
	copy(s.worths, s.roots)
	if s.setNets(); s.beyond(s.floor) {
		return false
	}
	s.raise()
	if s.setNets(); s.beyond(s.floor) {
		return false
	}
	if s.found = false; !s.complete() {
		s.descend()
	}
	return s.found
}

// complete extends a set greedily until it frees enough: it adds the item that frees the most of
// what is still lacking for its price. It returns false if that does not succeed.
func (s *search) complete() bool {
	copy(s.in, s.has)
	left, price := s.sum, s.paid // set by possible
	for !enough(left) {
		best, most := -1, 0.0
		for _, i := range s.open {
			if s.in.has(i) {
				continue
			}
			gain := 0.0
			for d, amount := range s.items[i].gives {
				if left[d] > 0 {
					gain += float64(min(amount, left[d])) / float64(left[d])
				}
			}
			if gain /= float64(s.items[i].price); gain > most {
				best, most = i, gain
			}
		}
		if best < 0 || price+s.items[best].price >= s.bar {
			return false
		}
		s.in.add(best)
		subtract(left, s.items[best].gives)
		price += s.items[best].price
	}
	s.found = true
	copy(s.set, s.in)
	return true
}

// descend searches the sets that contain has and omit hasNot.
func (s *search) descend() {
	copy(s.in, s.has)
	copy(s.out, s.hasNot)
	s.order = s.order[:0]
	for _, i := range s.open {
		switch {
		case !s.beyond(s.floor + math.Abs(s.nets[i])):
			s.order = append(s.order, i)
		case s.nets[i] > 0:
			s.out.add(i)
		default:
			s.in.add(i)
		}
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.weight(b), s.weight(a)), cmp.Compare(s.given(b), s.given(a)))
	})
	left := append(s.left[:0], s.lacks...)
	var price int64
	for i := range s.items {
		if s.in.has(i) {
			subtract(left, s.items[i].gives)
			price += s.items[i].price
		}
	}
	dims := len(s.lacks)
	size := (len(s.order) + 1) * dims
	s.left = slices.Grow(left, size)[:size]
	s.rest = append(s.rest[:0], make([]int64, size)...)
	for k := len(s.order) - 1; k >= 0; k-- {
		for d, amount := range s.items[s.order[k]].gives {
			s.rest[k*dims+d] = s.rest[(k+1)*dims+d] + amount
		}
	}
	s.most = append(s.most[:0], make([]int64, dims)...)
	for _, i := range s.order {
		for d, amount := range s.items[i].gives {
			s.most[d] = max(s.most[d], amount)
		}
	}
	s.decide(0, price, s.floor)
}

// weight returns how much a wrong decision about an item would raise the floor, plus how much the
// item frees, as a sum of shares. Items with a large weight are decided first.
func (s *search) weight(i int) float64 {
	return math.Round(64 * math.Abs(s.nets[i]) / float64(s.grain))
}

// given returns how much item i frees, as the sum of its shares of what is lacking.
func (s *search) given(i int) (all float64) {
	for _, share := range s.sharesOf(i) {
		all += share
	}
	return all
}

// decide searches the items from depth on. price is the sum of the prices of the items chosen
// before, and floor a lower bound for every set that contains them. It returns true if the search
// can stop.
func (s *search) decide(depth int, price int64, floor float64) bool {
	dims := len(s.lacks)
	left := s.left[depth*dims : (depth+1)*dims]
	if s.nodes++; s.nodes > s.effort {
		return true
	}
	if enough(left) {
		if price < s.bar {
			s.found = true
			copy(s.set, s.in)
			if !s.any {
				s.lower(price)
			}
			return s.any
		}
		return false
	}
	for d, rest := range s.rest[depth*dims : (depth+1)*dims] {
		if left[d] > rest {
			return false
		}
	}
	if depth == len(s.order) || s.beyond(floor) {
		return false
	}
	if s.near(left) && s.last(depth, left, price) {
		return s.any && s.found
	}
	i := s.order[depth]
	if s.nets[i] <= 0 {
		return s.with(i, depth, price, floor) || s.without(i, depth, price, floor)
	}
	return s.without(i, depth, price, floor) || s.with(i, depth, price, floor)
}

// near reports whether one or two more items may free what is left.
func (s *search) near(left []int64) bool {
	for d, lack := range left {
		if lack > 2*s.most[d] {
			return false
		}
	}
	return true
}

// last tries to complete the set with one more item, and reports whether the search below this node
// can stop: because no cheaper set remains, or because any set suffices. Its bound counts only the
// part of an item that is still lacking, which matters near the end.
func (s *search) last(depth int, left []int64, price int64) bool {
	s.nodes += len(s.order[depth:]) / 16 // because last takes longer than a node
	parts := s.slopes
	floor := float64(price)
	for d, lack := range left {
		parts[d] = max(0, float64(lack)/float64(s.lacks[d]))
		floor += s.worths[d] * parts[d]
	}
	one := -1
	for _, i := range s.order[depth:] {
		it := &s.items[i]
		if it.better.meets(s.out) {
			continue
		}
		net := float64(it.price)
		for d, share := range s.sharesOf(i) {
			net -= s.worths[d] * min(share, parts[d])
		}
		floor += min(0, net)
		if price+it.price < s.bar && (one < 0 || it.price < s.items[one].price) && covers(it.gives, left) {
			one = i
		}
	}
	if one >= 0 {
		s.found = true
		copy(s.set, s.in)
		s.set.add(one)
		if s.any {
			return true
		}
		s.lower(price + s.items[one].price)
	}
	return s.beyond(floor)
}

// covers reports whether an item frees at least what is left, in each class.
func covers(gives, left []int64) bool {
	for d, lack := range left {
		if gives[d] < lack {
			return false
		}
	}
	return true
}

// with continues the search with item i among the victims.
func (s *search) with(i, depth int, price int64, floor float64) (over bool) {
	it := &s.items[i]
	if it.better.meets(s.out) {
		return false
	}
	dims := len(s.lacks)
	left, next := s.left[depth*dims:(depth+1)*dims], s.left[(depth+1)*dims:(depth+2)*dims]
	for d, amount := range it.gives {
		next[d] = left[d] - amount
	}
	s.in.add(i)
	over = s.decide(depth+1, price+it.price, floor+max(0, s.nets[i]))
	s.in.drop(i)
	return over
}

// without continues the search with item i not among the victims.
func (s *search) without(i, depth int, price int64, floor float64) (over bool) {
	if s.items[i].worse.meets(s.in) {
		return false
	}
	dims := len(s.lacks)
	copy(s.left[(depth+1)*dims:(depth+2)*dims], s.left[depth*dims:(depth+1)*dims])
	s.out.add(i)
	over = s.decide(depth+1, price, floor+max(0, -s.nets[i]))
	s.out.drop(i)
	return over
}
