// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"slices"
)

// bound is the Lagrangian lower bound of the price of sets. Each dimension has a worth, its
// Lagrange multiplier: the worth of covering everything that the dimension lacks. The net price of
// an item is its price minus the worth of what it frees. The floor, the sum of the worths and of
// the negative net prices, is a lower bound. A set that omits an item of negative net price, or
// contains one of positive net price, costs at least that much more than the floor.
//
// The bound is about sets that contain certain items and omit others; the remaining items are open,
// and must cover what is lacking without those decided items.
type bound struct {
	shares []float64 // by item and dimension: the fraction of the lack that it covers
	open   []int
	parts  []float64 // by dimension: the fraction of the lack that the open items must cover
	paid   int64     // the price of the items that all sets have
	worths []float64 // by dimension
	nets   []float64 // by item: net prices of the open items
	floor  float64
	slack  float64 // maximum rounding error of such sums

	grain  int64   // the greatest common divisor of all prices
	top    float64 // the highest price below bar
	known  int64   // the price of a known set
	slopes []float64
	trial  []float64
	roots  []float64 // the worths with all items open
	ranks  []float64
	line   []int
}

// best finds the set with the lowest price below bar.
func (s *search) best(bar int64) {
	s.found, s.known, s.grain, s.nodes = false, boundless, 0, 0
	for i := range s.items {
		s.grain = divisor(s.grain, s.items[i].price)
	}
	s.lower(bar)
	s.measure()
	s.greedy()
	s.openAll()
	if copy(s.sum, s.lacks); s.complete() {
		s.offer()
	}
	for range rounds {
		s.raise()
		s.setNets()
		copy(s.roots, s.worths)
		if s.beyond(s.floor) {
			return
		}
		copy(s.ranks, s.nets)
		s.greedy()
	}
	if s.beyond(s.floor) {
		return
	}
	if s.descend(); s.found {
		s.lower(s.trim(s.set))
	}
}

// lower sets bar to a lower price. All prices and their sums are multiples of the grain.
func (s *search) lower(bar int64) {
	s.bar = bar
	s.top = float64((bar - 1) / s.grain * s.grain)
}

// beyond reports whether the search need not consider sets with at least that price.
func (s *search) beyond(price float64) bool { return price > s.top+s.slack }

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (s *search) sharesOf(i int) []float64 {
	dims := len(s.lacks)
	return s.shares[i*dims : (i+1)*dims]
}

// measure computes the shares, what each item frees of what is lacking, and ranks the items by
// price per share.
func (s *search) measure() {
	s.shares, s.ranks = s.shares[:0], s.ranks[:0]
	for i := range s.items {
		all := 0.0
		for d, lack := range s.lacks {
			share := float64(s.items[i].gives[d]) / float64(lack)
			s.shares = append(s.shares, share)
			all += share
		}
		s.ranks = append(s.ranks, float64(s.items[i].price)/all)
	}
}

// greedy offers the set of the items with the lowest ranks that together free enough.
func (s *search) greedy() {
	s.line = s.line[:0]
	for i := range s.items {
		s.line = append(s.line, i)
	}
	slices.SortFunc(s.line, func(a, b int) int { return cmp.Compare(s.ranks[a], s.ranks[b]) })
	clear(s.in)
	left := append(s.sum[:0], s.lacks...)
	for _, i := range s.line {
		if enough(left) {
			break
		}
		it := &s.items[i]
		for d, amount := range it.gives {
			if amount > 0 && left[d] > 0 {
				s.in.add(i)
				break
			}
		}
		if s.in.has(i) {
			subtract(left, it.gives)
		}
	}
	s.offer()
}

// offer improves the set in by simple exchanges, and stores it if its price is below bar.
func (s *search) offer() {
	price := s.exchange(s.in, s.trim(s.in))
	s.known = min(s.known, price)
	if price < s.bar {
		s.found = true
		s.lower(price)
		copy(s.set, s.in)
	}
}

// trim removes items that a set does not need, the most expensive first, and returns its price.
func (s *search) trim(set bits) (price int64) {
	over := s.sum
	for d, lack := range s.lacks {
		over[d] = -lack
	}
	s.line = s.line[:0]
	for i := range s.items {
		if set.has(i) {
			s.line = append(s.line, i)
			add(over, s.items[i].gives)
			price += s.items[i].price
		}
	}
	slices.SortFunc(s.line, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.items[b].price, s.items[a].price), cmp.Compare(b, a))
	})
	for _, i := range s.line {
		subtract(over, s.items[i].gives)
		if slices.Min(over) >= 0 {
			set.drop(i)
			price -= s.items[i].price
		} else {
			add(over, s.items[i].gives)
		}
	}
	return price
}

// exchange replaces items of a set by cheaper ones as long as the set frees enough, and returns its
// new price.
func (s *search) exchange(set bits, price int64) int64 {
	over := s.sum // set by trim
	for i := 0; i < len(s.items); i++ {
		if !set.has(i) {
			continue
		}
		out, best := &s.items[i], -1
		for j := range s.items {
			if in := &s.items[j]; !set.has(j) && in.price < out.price && (best < 0 || in.price < s.items[best].price) && replaces(in.gives, out.gives, over) {
				best = j
			}
		}
		if best < 0 {
			continue
		}
		in := &s.items[best]
		set.drop(i)
		set.add(best)
		subtract(over, out.gives)
		add(over, in.gives)
		price += in.price - out.price
		i = -1
	}
	return price
}

// replaces reports whether a set that frees over more than necessary still frees enough if it
// contains in instead of out.
func replaces(in, out, over []int64) bool {
	for d, spare := range over {
		if spare+in[d] < out[d] {
			return false
		}
	}
	return true
}

func add(to, amounts []int64) {
	for d, amount := range amounts {
		to[d] += amount
	}
}

func subtract(from, amounts []int64) {
	for d, amount := range amounts {
		from[d] -= amount
	}
}

// enough reports whether nothing is lacking.
func enough(left []int64) bool { return slices.Max(left) <= 0 }

// rounds is the number of alternating searches for worths and for a set, because each helps to
// find the other; steps is the number of changes of the worths in a round.
const (
	rounds = 4
	steps  = 15
)

// openAll opens all items and chooses initial worths.
func (s *search) openAll() {
	s.open, s.paid = s.open[:0], 0
	for i := range s.items {
		s.open = append(s.open, i)
	}
	dims := len(s.lacks)
	for _, list := range []*[]float64{&s.parts, &s.worths, &s.trial, &s.slopes, &s.roots} {
		*list = slices.Grow((*list)[:0], dims)[:dims]
	}
	for d := range dims {
		s.parts[d], s.trial[d] = 1, float64(s.known)/float64(dims)
	}
	highest := s.try()
	copy(s.worths, s.trial)
	for d := range dims {
		clear(s.trial)
		s.trial[d] = s.worthAlone(d)
		if floor := s.try(); floor > highest {
			highest = floor
			copy(s.worths, s.trial)
		}
	}
	s.nets = slices.Grow(s.nets[:0], len(s.items))[:len(s.items)]
}

// worthAlone returns the worth that a dimension would have if nothing else were lacking and items
// were divisible: the price per share of the last item that is necessary.
func (s *search) worthAlone(d int) float64 {
	each := func(i int) float64 { return float64(s.items[i].price) / s.sharesOf(i)[d] }
	s.line = s.line[:0]
	for i := range s.items {
		if s.sharesOf(i)[d] > 0 {
			s.line = append(s.line, i)
		}
	}
	slices.SortFunc(s.line, func(a, b int) int { return cmp.Compare(each(a), each(b)) })
	taken := 0.0
	for _, i := range s.line {
		if taken += s.sharesOf(i)[d]; taken >= 1 {
			return each(i)
		}
	}
	return 0
}

// raise searches for worths with a higher floor, by subgradient steps of Polyak's length.
func (s *search) raise() {
	goal := float64(min(s.bar, s.known))
	highest, stale, pace := math.Inf(-1), 0, 1.0
	copy(s.trial, s.worths)
	for range steps {
		floor := s.try()
		if floor > highest {
			highest, stale = floor, 0
			copy(s.worths, s.trial)
		} else if stale++; stale == 2 {
			stale, pace = 0, pace/2
		}
		length := 0.0
		for _, slope := range s.slopes {
			length += slope * slope
		}
		if length == 0 || floor >= goal {
			return
		}
		for d, slope := range s.slopes {
			s.trial[d] = max(0, s.trial[d]+pace*(goal-floor)/length*slope)
		}
	}
}

// try returns the floor with the worths in trial, and sets slopes to its subgradient.
func (s *search) try() float64 {
	floor := float64(s.paid)
	for d, worth := range s.trial {
		floor += worth * s.parts[d]
		s.slopes[d] = s.parts[d]
	}
	for _, i := range s.open {
		shares := s.sharesOf(i)
		net := float64(s.items[i].price)
		for d, share := range shares {
			net -= s.trial[d] * min(share, s.parts[d])
		}
		if net < 0 {
			floor += net
			for d, share := range shares {
				s.slopes[d] -= min(share, s.parts[d])
			}
		}
	}
	return floor
}

// setNets computes the net prices and the floor from the worths.
func (s *search) setNets() {
	s.floor = float64(s.paid)
	for d, worth := range s.worths {
		s.floor += worth * s.parts[d]
	}
	size := s.floor
	for _, i := range s.open {
		net := float64(s.items[i].price)
		size += net
		for d, share := range s.sharesOf(i) {
			worth := s.worths[d] * min(share, s.parts[d])
			net -= worth
			size += worth
		}
		s.nets[i] = net
		s.floor += min(0, net)
	}
	// Each operation has an error of at most the last place of a number of that size.
	s.slack = size * float64(len(s.open)*(len(s.lacks)+1)+4) * 0x1p-52
}
