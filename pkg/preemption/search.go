package preemption

import (
	"math"
	"slices"
	"sync"
)

// search finds the cheapest set of candidates that is enough: a covering problem in 0 and 1
// with as many dimensions as something is lacking in. It is solved by branch and bound, with
// Lagrange's bound (bound.go) and the rule that a candidate which is in no way better than
// others comes after them.
//
// A search is filled by begin and add, which is called in the order of ids, and asked
// once. It may be used again then.
type search struct {
	lacks   []int64 // by dimension, greater than 0
	costs   []int64 // by candidate
	amounts []int64 // by candidate and dimension

	items []item
	words []uint64 // of all sets of items
	sum   []int64  // by dimension, of a set that is being made
	bar   int64    // only a set with a lower price is of use
	set   bits     // the cheapest that was, if found
	found bool
	bound
	descent
}

// item is a candidate that may be in the set.
type item struct {
	place int // among the candidates
	// price is what it costs, and behind that 1: of sets that cost the same the one with
	// fewer items has the lower price.
	price int64
	gives []int64
	// better are the items that give no less and have a lower price, or the same and come
	// before it: the best set has it only with all of these. worse is the reverse.
	better, worse bits
	needless      bool // once all better ones are taken
}

// boundless is a bar, or a limit, that everything is below.
const boundless = math.MaxInt64

// bits is a set of items.
type bits []uint64

func (b bits) has(i int) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bits) add(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) drop(i int)     { b[i>>6] &^= 1 << (i & 63) }

func (b bits) meets(o bits) bool {
	for w, word := range b {
		if word&o[w] != 0 {
			return true
		}
	}
	return false
}

var searches = sync.Pool{New: func() any { return new(search) }}

// begin starts anew with what is lacking: more than 0 in each dimension.
func (s *search) begin(lacks []int64) {
	s.lacks = append(s.lacks[:0], lacks...)
	s.costs, s.amounts = s.costs[:0], s.amounts[:0]
}

// add adds a candidate with its cost, and gives the place for what it gives.
func (s *search) add(cost int64) (amounts []int64) {
	from, to := len(s.amounts), len(s.amounts)+len(s.lacks)
	s.costs = append(s.costs, max(0, cost))
	s.amounts = slices.Grow(s.amounts, len(s.lacks))[:to]
	return s.amounts[from:to]
}

// cheapest gives the places of the candidates that are enough together: those with the
// least cost, the fewest of these, and of these the set whose ids come first. ok is false
// where all together are not enough.
func (s *search) cheapest() (places []int, ok bool) {
	s.effort = victimsEffort
	return s.within()
}

// within is cheapest with the effort that is set.
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

// cost gives the cost of the cheapest set where it is less than limit, else limit.
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

// relaxed gives a cost that no set is below: if parts of items could be taken, and only the
// dimension in which that costs most were lacking. It is far less work than the search.
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
	// Sums of floats are off by a little.
	return math.Ceil(cost * (1 - 0x1p-40))
}

// plus adds what is not negative, up to the most that there is.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// gather makes items of the candidates that cost less than limit. It says whether all
// together are enough.
func (s *search) gather(limit int64) bool {
	unit := int64(len(s.costs) + 1)
	dearest := (1 << 61) / (unit * unit) // that sums of prices do not overflow
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
			gives[d] = min(max(0, gives[d]), lack) // more than that is of no use
			s.sum[d] = min(s.sum[d]+gives[d], lack)
			useful = useful || gives[d] > 0
		}
		if useful {
			s.items = append(s.items, item{place: place, price: min(cost, dearest)*unit + 1, gives: gives})
		}
	}
	return slices.Equal(s.sum, s.lacks)
}

// alone gives the item that is the best set by itself, where that is plain: no two others
// are cheaper.
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

// thin leaves out the items that are needless once all better ones are taken, and tells
// the others which are better.
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

// makeSets makes empty sets of items.
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

// outdoes says that the best set does not have b without a.
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
