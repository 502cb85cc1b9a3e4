package preemption

import (
	"cmp"
	"math"
	"slices"
)

// bound is Lagrange's: all that is lacking in a dimension is given a worth, and the net
// price of an item is its price less the worth of what it gives. No set is cheaper than
// the floor: all worths, and the net prices below 0. One without an item whose net price is
// below 0, or with one whose net price is above, costs as much more.
//
// It is of the sets that have all of some items, and none of others: the open ones are
// those that remain, and make up for what is lacking without them.
type bound struct {
	shares []float64 // by item and dimension: how much of all that is lacking it gives
	open   []int
	parts  []float64 // by dimension: how much of all that is lacking the open items have to give
	paid   int64     // for the items that all sets have
	worths []float64 // by dimension
	nets   []float64 // by item, of those that are open
	floor  float64
	slack  float64 // by how much sums of these may be off

	grain  int64   // the greatest divisor of all prices
	top    float64 // the highest price below bar
	known  int64   // the price of a set
	slopes []float64
	trial  []float64
	roots  []float64 // the worths where all items are open
	ranks  []float64
	line   []int
}

// best finds the set with the lowest price, where it is lower than bar.
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

// lower makes bar lower. All prices are multiples of the grain, and so are their sums.
func (s *search) lower(bar int64) {
	s.bar = bar
	s.top = float64((bar - 1) / s.grain * s.grain)
}

// beyond says that sets that cost at least as much are of no use.
func (s *search) beyond(price float64) bool { return price > s.top+s.slack }

// divisor is the greatest that both have.
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

// measure computes the shares, and ranks the items by what they cost for them.
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

// greedy looks at the set of the items with the lowest ranks that are enough, without
// those that are needless in it.
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

// offer takes over the set that is in, better by what is easy to see, if it is of use.
func (s *search) offer() {
	price := s.exchange(s.in, s.trim(s.in))
	s.known = min(s.known, price)
	if price < s.bar {
		s.found = true
		s.lower(price)
		copy(s.set, s.in)
	}
}

// trim takes out of a set what is needless in it, the dearest first, and gives its price.
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

// exchange swaps items of a set for cheaper ones as long as it is enough, and gives its
// price, which was price.
func (s *search) exchange(set bits, price int64) int64 {
	over := s.sum // as trim has left it
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

// replaces says that a set that gives so much over is enough with the one for the other.
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

// enough says that nothing is left of what was lacking.
func enough(left []int64) bool { return slices.Max(left) <= 0 }

// rounds is how often worths and a set are looked for in turn, since the one helps to find
// the other, and steps how often the worths are changed in each.
const (
	rounds = 4
	steps  = 15
)

// openAll opens all items, and chooses worths to begin with.
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

// worthAlone is what a dimension is worth if nothing else is lacking: the price for all of it
// by the item that is the last to be taken, if parts of items could be.
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

// raise looks for worths with a higher floor, by steps along its subgradient whose length
// is Polyak's.
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

// try gives the floor with the worths of the trial, and puts into slopes how it changes
// with them.
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

// setNets computes the net prices and the floor with the worths that were found.
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
	// Each of so many sums is off by at most the last place of a number of that size.
	s.slack = size * float64(len(s.open)*(len(s.lacks)+1)+4) * 0x1p-52
}
