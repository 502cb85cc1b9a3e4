package preemption

import (
	"cmp"
	"math"
	"slices"
)

// descent decides on one item after the other, whether it is in the set.
type descent struct {
	has, hasNot bits    // what is decided beforehand: items that are in the set, and that are not
	order       []int   // the others
	left        []int64 // by depth and dimension: what is lacking
	rest        []int64 // by depth and dimension: what all items from there on give
	most        []int64 // by dimension: what one item gives at most
	in, out     bits
	any         bool // whether any set will do, not only the best
	nodes       int
	effort      int // how many nodes are looked at
}

// How many nodes are looked at: some milliseconds' worth for victims, and less for
// costs, which many hosts have.
const (
	victimsEffort = 1 << 16
	costsEffort   = 1 << 13
)

// firstOfEquals finds, of the sets with the same price as the one that was found, the one
// whose ids come first. It asks of one item after the other whether such a set has it and
// those that were found to be in it.
func (s *search) firstOfEquals() {
	if s.nodes > s.effort {
		return // a better one may have been missed
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

// possible looks for a set of use that has, and has not, what is decided.
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

// complete looks for a set by taking, one after the other, the item that gives the most of
// what is lacking still for its price.
func (s *search) complete() bool {
	copy(s.in, s.has)
	left, price := s.sum, s.paid // both as possible has left them
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

// descend looks for sets of use that have, and have not, what is decided.
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

// weight says how much it matters to decide rightly on an item, and given how much the item
// gives, in parts of what was lacking.
func (s *search) weight(i int) float64 {
	return math.Round(64 * math.Abs(s.nets[i]) / float64(s.grain))
}

func (s *search) given(i int) (all float64) {
	for _, share := range s.sharesOf(i) {
		all += share
	}
	return all
}

// decide decides on the items from depth on: those before have that price, and no set with
// these is cheaper than floor. It says that the descent is over.
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

// near says that one or two items may be enough for what is left.
func (s *search) near(left []int64) bool {
	for d, lack := range left {
		if lack > 2*s.most[d] {
			return false
		}
	}
	return true
}

// last tries to be enough with one more item, and says whether it is of no use to go on:
// either no set is left that is cheaper than what was found so, or any will do. Its bound
// counts of what the items give only what is still left, which matters near the end.
func (s *search) last(depth int, left []int64, price int64) bool {
	s.nodes += len(s.order[depth:]) / 16 // as it takes so much longer
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

func covers(gives, left []int64) bool {
	for d, lack := range left {
		if gives[d] < lack {
			return false
		}
	}
	return true
}

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
