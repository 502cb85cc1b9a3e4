// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"math"
	"slices"
	"sync"
)

// search finds the cheapest set of candidates that frees enough room: a 0-1 covering problem with
// one dimension for each lacking resource class. It uses branch and bound with Lagrangian bounds
// (bound.go) and dominance: the set contains a candidate only together with all candidates that are
// better in every respect.
//
// Callers fill a search with begin and then add, in the order of IDs, and call cheapest or cost
// once. After that they can fill it again.
type search struct {
	lacks   []int64 // by dimension, greater than 0
	costs   []int64 // by candidate
	amounts []int64 // by candidate and dimension

	items []item
	words []uint64 // memory of all sets of items
	sum   []int64  // by dimension: scratch
	bar   int64    // the search is for sets with a lower price
	set   bits     // the cheapest set so far, if found
	found bool
	bound
	descent
}

// item is a candidate that can be in the set.
type item struct {
	place int // among the candidates
	// price is the cost times a unit, plus 1, so that of sets with the same cost the one with fewer
	// items has the lower price.
	price int64
	gives []int64 // by dimension: the amount that it frees
	// better are the items that free at least as much and have a lower price, or the same price and
	// a smaller ID: the best set contains the item only together with all of them. worse is the
	// inverse relation.
	better, worse bits
	needless      bool // its better items are enough together
}

// boundless is a bar or limit that exceeds every price and cost.
const boundless = math.MaxInt64

// bits is a set of items.
type bits []uint64

func (b bits) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bits) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) drop(i int)     { b[i>>6] &^= 1 << (i & 63) }

// meets reports whether b and o have a bit in common.
func (b bits) meets(o bits) bool {
	for w, word := range b {
		if word&o[w] != 0 {
			return true
		}
	}
	return false
}

var searches = sync.Pool{New: func() any { return new(search) }}

// begin resets the search. lacks is the amount that is lacking in each dimension, always more than
// 0.
func (s *search) begin(lacks []int64) {
	s.lacks = append(s.lacks[:0], lacks...)
	s.costs, s.amounts = s.costs[:0], s.amounts[:0]
}

// add adds a candidate with its cost, and returns the slice for the amounts that it frees.
func (s *search) add(cost int64) (amounts []int64) {
	from, to := len(s.amounts), len(s.amounts)+len(s.lacks)
	s.costs = append(s.costs, max(0, cost))
	s.amounts = slices.Grow(s.amounts, len(s.lacks))[:to]
	return s.amounts[from:to]
}

// cheapest returns the indexes of the candidates in the best set: the least cost, then the fewest
// candidates, then the smallest IDs. ok is false if all candidates together do not free enough.
func (s *search) cheapest() (places []int, ok bool) {
	s.effort = victimsEffort
	return s.within()
}

// within is cheapest, limited to the current effort.
func (s *search) within() (places []int, ok bool) {
	if !s.gather(boundless) {
		return nil, false
	}
	if one := s.alone(); one >= 0 {
		return []int{s.items[one].place}, true
	}
	s.thin()
	s.best(boundless)
	s.firstOfEquals()
	for i := range s.items {
		if s.set.has(i) {
			places = append(places, s.items[i].place)
		}
	}
	return places, true
}

// cost returns the cost of the cheapest set, or limit if that is less.
func (s *search) cost(limit int64) int64 {
	if !s.gather(limit) || limit < boundless && s.relaxed() >= float64(limit) {
		return limit
	}
	if one := s.alone(); one >= 0 {
		return min(limit, s.costs[s.items[one].place])
	}
	s.thin()
	s.effort = costsEffort
	bar := int64(boundless)
	if unit := int64(len(s.costs) + 1); limit < bar/unit {
		bar = limit * unit
	}
	if s.best(bar); !s.found {
		return limit
	}
	var cost int64
	for i := range s.items {
		if s.set.has(i) {
			cost = plus(cost, s.costs[s.items[i].place])
		}
	}
	return min(limit, cost)
}

// relaxed returns a lower bound of the cost of every set: the cost if items were divisible and only
// one dimension were lacking, the most expensive one. It is much faster than the search.
func (s *search) relaxed() (cost float64) {
	for d, lack := range s.lacks {
		left, sum := lack, 0.0
		s.words = append(s.words[:0], make([]uint64, (len(s.items)+63)/64)...)
		taken := bits(s.words)
		for left > 0 {
			best, least := -1, math.Inf(1)
			for i := range s.items {
				if gives := s.items[i].gives[d]; gives > 0 && !taken.has(i) {
					if each := float64(s.costs[s.items[i].place]) / float64(gives); best < 0 || each < least {
						best, least = i, each
					}
				}
			}
			taken.add(best)
			part := min(left, s.items[best].gives[d])
			sum += least * float64(part)
			left -= part
		}
		cost = max(cost, sum)
	}
	// Allow for rounding errors.
	return math.Ceil(cost * (1 - 0x1p-40))
}

// plus adds two numbers that are not negative; the result is at most math.MaxInt64.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// gather makes items of the useful candidates that cost less than limit. It reports whether all of
// them together free enough.
func (s *search) gather(limit int64) bool {
	unit := int64(len(s.costs) + 1)
	dearest := (1 << 61) / (unit * unit) // so that sums of prices do not overflow
	dims := len(s.lacks)
	s.items = s.items[:0]
	s.sum = append(s.sum[:0], make([]int64, dims)...)
	for place, cost := range s.costs {
		if cost >= limit && limit < boundless {
			continue
		}
		gives := s.amounts[place*dims : (place+1)*dims]
		useful := false
		for d, lack := range s.lacks {
			gives[d] = min(max(0, gives[d]), lack) // more is of no use
			s.sum[d] = min(s.sum[d]+gives[d], lack)
			useful = useful || gives[d] > 0
		}
		if useful {
			s.items = append(s.items, item{place: place, price: min(cost, dearest)*unit + 1, gives: gives})
		}
	}
	return slices.Equal(s.sum, s.lacks)
}

// alone returns the index of the item that is the best set by itself, or -1. It finds it only in
// the easy case that no two other items together are cheaper.
func (s *search) alone() int {
	one, least, second := -1, int64(math.MaxInt64/2), int64(math.MaxInt64/2)
	for i := range s.items {
		it := &s.items[i]
		switch {
		case slices.Equal(it.gives, s.lacks):
			if one < 0 || it.price < s.items[one].price {
				one = i
			}
		case it.price < least:
			least, second = it.price, least
		case it.price < second:
			second = it.price
		}
	}
	if one >= 0 && s.items[one].price > least+second {
		return -1
	}
	return one
}

// thin removes the items whose better items free enough without them, and sets better and worse of
// the others.
func (s *search) thin() {
	for j := range s.items {
		clear(s.sum)
		for i := range s.items {
			if i != j && s.items[i].outdoes(&s.items[j]) {
				for d, lack := range s.lacks {
					s.sum[d] = min(s.sum[d]+s.items[i].gives[d], lack)
				}
			}
		}
		s.items[j].needless = slices.Equal(s.sum, s.lacks)
	}
	s.items = slices.DeleteFunc(s.items, func(it item) bool { return it.needless })
	s.makeSets()
	for j := range s.items {
		for i := range s.items {
			if i != j && s.items[i].outdoes(&s.items[j]) {
				s.items[j].better.add(i)
				s.items[i].worse.add(j)
			}
		}
	}
}

// makeSets allocates empty sets of items.
func (s *search) makeSets() {
	words := (len(s.items) + 63) / 64
	s.words = append(s.words[:0], make([]uint64, words*(2*len(s.items)+5))...)
	at := 0
	next := func() bits {
		at += words
		return s.words[at-words : at : at]
	}
	s.set, s.in, s.out, s.has, s.hasNot = next(), next(), next(), next(), next()
	for i := range s.items {
		s.items[i].better, s.items[i].worse = next(), next()
	}
}

// outdoes reports whether a is better than b in every respect, so that the best set does not
// contain b without a.
func (a *item) outdoes(b *item) bool {
	if a.price > b.price || a.price == b.price && a.place > b.place {
		return false
	}
	for d, amount := range a.gives {
		if amount < b.gives[d] {
			return false
		}
	}
	return true
}
