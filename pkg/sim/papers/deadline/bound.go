// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"cmp"
	"slices"
)

const (
	// boundSteps is the number of parts of a run between which the intervals of mostAccepted begin and end.
	boundSteps = 4000
	// boundReach is the length of the longest of these intervals, in steps.
	boundReach = 400
)

// mostAccepted returns a number of requests that no schedule exceeds, not even one that knows all requests beforehand, interrupts
// jobs and moves them between hosts.
//
// Jobs whose ready time and deadline are in an interval have no more hosts × seconds than the machine has in it. So of n
// such jobs at least those are rejected that remain when the smallest ones have filled it. Intervals that do not
// overlap contain different jobs, so the rejections of such intervals add up; dynamic programming finds the most.
func mostAccepted(hosts int, requests []request) int {
	last := int64(1)
	for _, r := range requests {
		last = max(last, r.latestEnd)
	}
	step := max(1, (last+boundSteps-1)/boundSteps)
	steps := int(last/step) + 1
	bySize := slices.SortedFunc(func(yield func(int) bool) {
		for i := range requests {
			if !yield(i) {
				return
			}
		}
	}, func(a, b int) int {
		return cmp.Or(cmp.Compare(requests[a].work(), requests[b].work()), cmp.Compare(a, b))
	})
	rank, byEnd := make([]int, len(requests)), make([][]int, steps+1)
	for place, i := range bySize {
		rank[i] = place
		end := int((requests[i].latestEnd + step - 1) / step)
		byEnd[end] = append(byEnd[end], i)
	}
	rejected := make([]int, steps+1)
	for from := steps - 1; from >= 0; from-- {
		rejected[from] = rejected[from+1]
		inside := newSizes(len(requests))
		for to := from + 1; to <= min(from+boundReach, steps); to++ {
			for _, i := range byEnd[to] {
				if requests[i].ready >= int64(from)*step {
					inside.add(rank[i], requests[i].work())
				}
			}
			room := float64(hosts) * float64(int64(to-from)*step)
			rejected[from] = max(rejected[from], inside.count-inside.fitting(room)+rejected[to])
		}
	}
	return len(requests) - rejected[0]
}

// sizes are jobs by the order of their work, as a Fenwick tree of counts and sums.
type sizes struct {
	count  int
	counts []int
	sums   []float64
}

func newSizes(n int) *sizes { return &sizes{counts: make([]int, n+1), sums: make([]float64, n+1)} }

// add adds a job with that place in the order.
func (s *sizes) add(place int, work float64) {
	s.count++
	for i := place + 1; i < len(s.counts); i += i & -i {
		s.counts[i]++
		s.sums[i] += work
	}
}

// fitting returns how many of the smallest jobs have at most that much work together.
func (s *sizes) fitting(room float64) (n int) {
	at, jump := 0, 1
	for jump*2 < len(s.counts) {
		jump *= 2
	}
	for ; jump > 0; jump /= 2 {
		if next := at + jump; next < len(s.counts) && s.sums[next] <= room {
			at, room, n = next, room-s.sums[next], n+s.counts[next]
		}
	}
	return n
}
