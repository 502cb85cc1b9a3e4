// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// survey contains the data from which all feasible starts of a query are computed.
type survey struct {
	openings []opening      // sorted by begin
	starts   []span.Instant // the possible starts, sorted, each once
	lastSlot span.Instant   // the last slot boundary of the queried hosts
}

// survey reads the lanes of the queried hosts once.
func (c *Calendar) survey(q *Query) survey {
	hosts := q.Hosts.Count()
	s := survey{openings: make([]opening, 0, hosts), starts: make([]span.Instant, 0, 2+hosts), lastSlot: never}
	s.starts = append(s.starts, q.Ready, q.latest())
	for host := range q.Hosts.All() {
		s.openings = c.appendOpenings(s.openings, q, host, q.Ready, q.latest())
		s.boundaries(q, c.lanes[host].busy())
		if usable := q.availableFrom(host); q.Ready < usable && usable <= q.latest() {
			s.starts = append(s.starts, usable)
		}
	}
	slices.SortFunc(s.openings, func(a, b opening) int { return cmp.Compare(a.begin, b.begin) })
	s.sortStarts(q.Ready, q.latest())
	return s
}

// sortStarts sorts the starts, which are all in [from, to], and removes duplicates. If there are
// many for the length of this span, it marks them in a set of seconds, which is three times as
// fast.
func (s *survey) sortStarts(from, to span.Instant) {
	if seconds := int64(to-from) + 1; 0 < seconds && seconds <= 64*int64(len(s.starts)) {
		marked := hostset.New(int(seconds))
		for _, at := range s.starts {
			marked.Add(int(at - from))
		}
		s.starts = s.starts[:0]
		for offset := range marked.All() {
			s.starts = append(s.starts, from+span.Instant(offset))
		}
		return
	}
	slices.Sort(s.starts)
	s.starts = slices.Compact(s.starts)
}

// boundaries adds the starts that result from the slot boundaries of one lane.
func (s *survey) boundaries(q *Query, busy spans) {
	if len(busy) == 0 {
		return
	}
	s.lastSlot = max(s.lastSlot, busy[len(busy)-1].End)
	add := func(t span.Instant) {
		if q.Ready <= t && t <= q.latest() {
			s.starts = append(s.starts, t)
		}
	}
	for _, w := range busy[busy.endingAfter(q.Ready-1):] {
		if w.Start > q.Deadline {
			return
		}
		for _, boundary := range []span.Instant{w.Start, w.End} {
			add(boundary)
			add(boundary - span.Instant(q.Duration))
		}
	}
}

// candidates iterates over the starts, in order, and keeps the openings that contain the present
// start. Openings enter in the order of their begin and leave in the order of their end. So the
// last one that entered and is still there has the latest begin, and the next one to leave has the
// earliest end: these two are the sides of the rectangle.
func (s *survey) candidates(q *Query) iter.Seq[Candidate] {
	return func(yield func(Candidate) bool) {
		var entered []opening // the last that has not left began last
		var ends endHeap
		next := 0
		for _, start := range s.starts {
			for next < len(s.openings) && s.openings[next].begin <= start {
				entered = append(entered, s.openings[next])
				heap.Push(&ends, s.openings[next].end)
				next++
			}
			gone := q.Window(start).End
			for len(ends) > 0 && ends[0] < gone {
				heap.Pop(&ends)
			}
			for len(entered) > 0 && entered[len(entered)-1].end < gone {
				entered = entered[:len(entered)-1]
			}
			if len(ends) == 0 || len(ends) < q.Quantity {
				continue
			}
			end := ends[0]
			if end == span.Forever {
				end = max(q.Deadline, s.lastSlot)
			}
			begin := max(entered[len(entered)-1].begin, q.Now)
			if !yield(Candidate{Start: start, Begin: begin, End: end, Free: len(ends)}) {
				return
			}
		}
	}
}

// endHeap is a heap with the smallest end on top.
type endHeap []span.Instant

func (h endHeap) Len() int           { return len(h) }
func (h endHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h endHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)        { *h = append(*h, x.(span.Instant)) }
func (h *endHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
