// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"iter"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Query is a search for Quantity hosts that are free at the same time, for Duration seconds,
// within [Ready, Deadline). It is the request of paper 003 section 3; Now is its arrival time.
type Query struct {
	Now, Ready, Deadline span.Instant
	Duration             int64
	Quantity             int
	// Hosts are the eligible hosts; nil means every host.
	Hosts hostset.Set
	// AvailableFrom is the instant, for each host, from which it can be used, for hosts that must
	// boot first; nil means that all can be used at any time.
	AvailableFrom []span.Instant
}

// latest returns the latest start.
func (q *Query) latest() span.Instant { return q.Deadline - span.Instant(q.Duration) }

// Window returns the span of the query with start s.
func (q *Query) Window(s span.Instant) span.Span { return span.New(s, q.Duration) }

func (q *Query) availableFrom(host int) span.Instant {
	if q.AvailableFrom == nil {
		return never
	}
	return q.AvailableFrom[host]
}

// Candidate is a feasible start with its availability rectangle: Free hosts are free throughout
// [Begin, End), which contains the reservation's span. Begin is not before the query's Now. If all
// of these hosts are free forever, End is the later of the deadline and the last slot (erratum
// E003-4).
type Candidate struct {
	Start, Begin, End span.Instant
	Free              int
}

// Window is a maximal run of feasible starts, from Start to LatestStart. Free is the number of
// hosts free at Start.
type Window struct {
	Start, LatestStart span.Instant
	Free               int
}

// Find returns the start that the policy chooses; false if none is feasible. Among equal rectangles
// the earliest start is chosen.
func (c *Calendar) Find(q Query, p Policy) (span.Instant, bool) {
	if p == PolicyFirstFit {
		return c.earliest(c.complete(q))
	}
	best, found := p.Best(c.Candidates(q))
	return best.Start, found
}

// FreeAt returns the hosts that are free for the query from start on.
func (c *Calendar) FreeAt(q Query, start span.Instant) hostset.Set {
	q = c.complete(q)
	free := c.Free(q.Window(start), q.Hosts)
	if q.AvailableFrom != nil {
		for host := range free.All() {
			if q.availableFrom(host) > start {
				free.Remove(host)
			}
		}
	}
	return free
}

// NextTurn returns the first start, after another one, at which the part of the host that is free for
// the query may be another; Forever if there is none.
func (c *Calendar) NextTurn(q Query, host int, after span.Instant) span.Instant {
	next := span.Forever
	note := func(start span.Instant) {
		if start > after {
			next = min(next, start)
		}
	}
	note(q.availableFrom(host))
	for _, w := range c.lanes[host].whole[c.lanes[host].whole.endingAfter(after):] {
		first := w.Start.Add(1 - q.Duration) // the first start that meets w
		if note(first); first >= next {
			break
		}
		note(w.End)
	}
	for _, s := range c.lanes[host].slices {
		first := s.span.Start.Add(1 - q.Duration)
		if note(first); first > next {
			break
		}
		note(s.span.End)
	}
	return next
}

// FirstFree returns the first hosts of order that are free for the query from start on, at most
// Quantity. If order contains all hosts, these are the first ones of FreeAt in that order, but
// FirstFree reads fewer lanes.
func (c *Calendar) FirstFree(q Query, start span.Instant, order iter.Seq[int]) []int {
	q = c.complete(q)
	w := q.Window(start)
	free, open := c.index.split(w, q.Hosts)
	found := make([]int, 0, min(q.Quantity, c.Hosts()))
	for host := range order {
		if len(found) == q.Quantity {
			break
		}
		if q.availableFrom(host) <= start && (free.Has(host) || open.Has(host) && c.lanes[host].busy().free(w)) {
			found = append(found, host)
		}
	}
	return found
}

// Candidates iterates over the feasible starts in ascending order (paper 003 Algorithm 3): the
// ready time, the latest start, and each slot boundary and each boundary minus the duration
// between them.
func (c *Calendar) Candidates(q Query) iter.Seq[Candidate] {
	q = c.complete(q)
	return func(yield func(Candidate) bool) {
		if q.latest() < q.Ready {
			return
		}
		s := c.survey(&q)
		for candidate := range s.candidates(&q) {
			if !yield(candidate) {
				return
			}
		}
	}
}

// Windows iterates over the maximal runs of feasible starts in ascending order.
func (c *Calendar) Windows(q Query) iter.Seq[Window] {
	q = c.complete(q)
	return func(yield func(Window) bool) {
		var open *Window
		for at, free := range levels(c.openings(&q, q.Hosts, q.Ready, q.latest())) {
			switch {
			case free >= q.Quantity && open == nil:
				open = &Window{Start: at, Free: free}
			case free < q.Quantity && open != nil:
				open.LatestStart = at - 1
				if !yield(*open) {
					return
				}
				open = nil
			}
		}
	}
}

// MostFree returns the largest number of hosts that are free together at any feasible start of
// the query, whatever its Quantity.
func (c *Calendar) MostFree(q Query) int {
	q = c.complete(q)
	most := 0
	for _, free := range levels(c.openings(&q, q.Hosts, q.Ready, q.latest())) {
		most = max(most, free)
	}
	return most
}

// complete returns the query with all hosts if it has none.
func (c *Calendar) complete(q Query) Query {
	if q.Hosts == nil {
		q.Hosts = hostset.Full(c.Hosts())
	}
	return q
}
