// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Until returns the latest instant until which enough hosts are free from start on, whatever the query's Duration; at most
// the deadline. It is start if too few are free there.
func (c *Calendar) Until(q Query, start span.Instant) span.Instant {
	q = c.complete(q)
	var free shrinking
	for host := range q.Hosts.All() {
		if q.availableFrom(host) <= start {
			free.add(c.lanes[host].busy().freeUntil(start), 1)
		}
	}
	return free.until(q.Quantity, span.Span{Start: start, End: q.Deadline})
}

// SlicesUntil is Until for slices.
func (c *Calendar) SlicesUntil(q SliceQuery, start span.Instant) span.Instant {
	q.Query = c.complete(q.Query)
	deadline := q.Deadline
	q.Ready, q.Duration, q.Deadline = start, 1, start+1
	var room shrinking
	for host := range q.Hosts.All() {
		s := c.stairs(&q, host, q.Quantity)
		if s == nil {
			continue
		}
		least := s.counted
		for least > 0 && s.until < deadline {
			next := s.stretch()
			if counted := min(least, q.count(next.room, q.Quantity)); counted < least {
				room.add(s.until, least-counted)
				least = counted
			}
			s.until = next.end
		}
		room.add(deadline, least)
	}
	return room.until(q.Quantity, span.Span{Start: start, End: deadline})
}

// Longest returns the longest span that is longer than the query's Duration less one second and throughout which enough hosts
// are free, from the first possible start on; false if there is none. It begins at latest or before, and ends at the deadline
// or before.
func (c *Calendar) Longest(q Query, latest span.Instant) (longest span.Span, found bool) {
	q = c.complete(q)
	gaps := c.openings(&q, q.Hosts, q.Ready, min(latest, q.latest()))
	slices.SortFunc(gaps, func(a, b opening) int { return cmp.Compare(a.first, b.first) })
	least := q.Duration
	var ends endHeap // of the gaps that are long enough to be part of a longer span
	for i, gap := range gaps {
		heap.Push(&ends, min(gap.end, q.Deadline))
		if i+1 < len(gaps) && gaps[i+1].first == gap.first {
			continue
		}
		for len(ends) > q.Quantity || len(ends) > 0 && ends[0] < gap.first.Add(least) {
			heap.Pop(&ends)
		}
		if len(ends) == q.Quantity {
			longest, found = span.Span{Start: gap.first, End: ends[0]}, true
			least = longest.Seconds() + 1
		}
	}
	return longest, found
}

// freeUntil returns the first instant of the set from t on; Forever if there is none.
func (s spans) freeUntil(t span.Instant) span.Instant {
	i := s.endingAfter(t)
	if i == len(s) {
		return span.Forever
	}
	return max(s[i].Start, t)
}

// shrinking is an amount that becomes smaller in time.
type shrinking []loss

// loss is an amount that is there until an instant.
type loss struct {
	at     span.Instant
	amount int64
}

// add adds an amount that is there until an instant.
func (s *shrinking) add(until span.Instant, amount int64) {
	if amount > 0 {
		*s = append(*s, loss{until, amount})
	}
}

// until returns the latest instant of w until which the amount is at least quantity, from the start of w on.
func (s shrinking) until(quantity int, w span.Span) span.Instant {
	total := int64(0)
	for _, l := range s {
		if l.at >= w.End {
			total += l.amount
		}
	}
	if total >= int64(quantity) {
		return w.End
	}
	s = slices.DeleteFunc(s, func(l loss) bool { return l.at <= w.Start || l.at >= w.End })
	slices.SortFunc(s, func(a, b loss) int { return cmp.Compare(b.at, a.at) })
	for _, l := range s {
		if total += l.amount; total >= int64(quantity) {
			return l.at
		}
	}
	return w.Start
}
