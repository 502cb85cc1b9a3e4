// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// stairs iterates over the starts of a query at which the number of slices that fit on one host
// changes. The number is the least room at any instant of the window of a start: a sliding
// minimum over the steps of the host's usage, at amortized O(1) per step.
type stairs struct {
	query *SliceQuery
	limit int
	lane  *lane
	shape shape

	at      span.Instant // the current start
	counted int64        // slices that count from there on

	// window contains the stretches of constant room that overlap the query's window at the start
	// at. It omits a stretch if a later one has no more room, so that the room of the remaining
	// ones rises.
	window []stretch
	until  span.Instant // end of the part of the lane that was read
	step   int          // of held, at until
	whole  int          // the first whole-host claim that ends after until
}

// stretch is a span of constant room that ends at end.
type stretch struct {
	end  span.Instant
	room int64
}

// stairs returns the stairs at the first start of the query at which the host is usable; nil if it
// never is.
func (c *Calendar) stairs(q *SliceQuery, host, limit int) *stairs {
	l, first := c.lanes[host], max(q.Ready, q.availableFrom(host))
	if first > q.latest() {
		return nil
	}
	s := &stairs{
		query: q, limit: limit, lane: l, shape: l.held.shapeOf(q.Shape, l.capacity, q.mostOn(limit)),
		at: first, until: first, step: l.held.during(first), whole: l.whole.endingAfter(first),
	}
	s.read()
	s.counted = q.count(s.window[0].room, limit)
	return s
}

// climbed returns s at the next start that changes the number of slices that count; nil if there is
// no such start.
func (s *stairs) climbed() *stairs {
	for {
		s.at = min(s.window[0].end, s.until-span.Instant(s.query.Duration)+1)
		if s.at > s.query.latest() {
			return nil
		}
		if s.window[0].end <= s.at {
			s.window = s.window[1:]
		}
		s.read()
		if counted := s.query.count(s.window[0].room, s.limit); counted != s.counted {
			s.counted = counted
			return s
		}
	}
}

// read reads the lane to the end of the window of at.
func (s *stairs) read() {
	for end := s.query.Window(s.at).End; s.until < end; {
		next := s.stretch()
		keep := len(s.window)
		for keep > 0 && s.window[keep-1].room >= next.room {
			keep--
		}
		s.window = append(s.window[:keep], next)
		s.until = next.end
	}
}

// stretch returns the next part of the host's lane in which the room for slices is constant: from
// s.until to the end of the result. The room is 0 in a whole-host claim. It advances s.step and
// s.whole to s.until.
func (s *stairs) stretch() stretch {
	held, next := &s.lane.held, stretch{end: span.Forever, room: s.shape.most}
	for s.whole < len(s.lane.whole) && s.lane.whole[s.whole].End <= s.until {
		s.whole++
	}
	if s.whole < len(s.lane.whole) {
		w := s.lane.whole[s.whole]
		if w.Start <= s.until {
			return stretch{end: w.End}
		}
		next.end = w.Start
	}
	for s.step+1 < len(held.at) && held.at[s.step+1] <= s.until {
		s.step++ // more than one only after a whole-host claim
	}
	if s.step >= 0 {
		next.room = s.shape.fits(held.step(s.step))
	}
	if s.step+1 < len(held.at) {
		next.end = min(next.end, held.at[s.step+1])
	}
	return next
}

// change is the next start at which the number of slices on the host of stairs changes.
type change struct {
	at     span.Instant
	before int64
	of     *stairs
}

// changes is a heap of the next change of each of the stairs of a query, the earliest on top.
type changes []change

// with appends the next change of s, if there is one. The heap order must be restored
// afterward.
func (c changes) with(s *stairs) changes {
	before := s.counted
	if s.climbed() == nil {
		return c
	}
	return append(c, change{at: s.at, before: before, of: s})
}

func (c changes) order() {
	slices.SortFunc(c, func(a, b change) int { return cmp.Compare(a.at, b.at) })
}

// next replaces the first change by the next change of the same stairs.
func (c changes) next() changes {
	first := &c[0]
	first.before = first.of.counted
	if first.of.climbed() != nil {
		first.at = first.of.at
	} else {
		c[0] = c[len(c)-1]
		c = c[:len(c)-1]
	}
	c.sink()
	return c
}

// sink moves the first change down to its place in the heap.
func (c changes) sink() {
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(c); child++ {
			if c[child].at < c[least].at {
				least = child
			}
		}
		if least == at {
			return
		}
		c[at], c[least] = c[least], c[at]
		at = least
	}
}
