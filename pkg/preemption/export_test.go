// SPDX-License-Identifier: Apache-2.0

package preemption

// Cheapest runs a search; costs and amounts are by candidate.
func Cheapest(lacks, costs []int64, amounts [][]int64) (places []int, ok bool) {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.fill(lacks, costs, amounts)
	return s.cheapest()
}

// CheapestWithin runs a search that visits at most this many nodes.
func CheapestWithin(effort int, lacks, costs []int64, amounts [][]int64) []int {
	s := new(search)
	s.fill(lacks, costs, amounts)
	s.effort = effort
	places, _ := s.within()
	return places
}

// CheapestCost runs a search for a cost below limit.
func CheapestCost(lacks, costs []int64, amounts [][]int64, limit int64) int64 {
	s := searches.Get().(*search)
	defer searches.Put(s)
	s.fill(lacks, costs, amounts)
	return s.cost(limit)
}

// Nodes returns how many nodes the descents for the best set and for the first of its equals
// visit, and whether that is too many.
func Nodes(lacks, costs []int64, amounts [][]int64) (best, first int, tooMany bool) {
	s := new(search)
	s.fill(lacks, costs, amounts)
	if !s.gather(boundless) || s.alone() >= 0 {
		return 0, 0, false
	}
	s.thin()
	s.effort = victimsEffort
	s.best(boundless)
	best = s.nodes
	s.firstOfEquals()
	return best, s.nodes, max(best, s.nodes) > s.effort
}

func (s *search) fill(lacks, costs []int64, amounts [][]int64) {
	s.begin(lacks)
	for i, cost := range costs {
		copy(s.add(cost), amounts[i])
	}
}
