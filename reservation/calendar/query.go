package calendar

import (
	"iter"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Query asks for Quantity hosts that are free at the same time, for Duration
// seconds, somewhere in [Ready, Deadline). It is the request of paper 003
// section 3; Now is its arrival time.
type Query struct {
	Now, Ready, Deadline span.Instant
	Duration             int64
	Quantity             int
	// Hosts are those that may serve; nil is every host.
	Hosts hostset.Set
	// AvailableFrom says for each host from when it can be used at all, as for
	// one that must boot first; nil means that all can be used at any time.
	AvailableFrom []span.Instant
}

// latest is the latest start.
func (q *Query) latest() span.Instant { return q.Deadline - span.Instant(q.Duration) }

// Window is the span that a start at s takes.
func (q *Query) Window(s span.Instant) span.Span { return span.New(s, q.Duration) }

func (q *Query) availableFrom(host int) span.Instant {
	if q.AvailableFrom == nil {
		return never
	}
	return q.AvailableFrom[host]
}

// Candidate is a feasible start with its availability rectangle: Free hosts are
// free throughout [Begin, End), which covers the start and the duration. Begin is
// not before the query's Now. Where all of them are free for ever, End is the
// later of the deadline and the last slot (E003-4).
type Candidate struct {
	Start, Begin, End span.Instant
	Free              int
}

// Window is a maximal run of feasible starts: every start from Start to
// LatestStart will do. Free is the number of hosts free at Start.
type Window struct {
	Start, LatestStart span.Instant
	Free               int
}

// Find gives the start that the policy chooses, false where none is feasible.
// Equal rectangles go to the earliest start.
func (c *Calendar) Find(q Query, p Policy) (span.Instant, bool) {
	if p == FirstFit {
		return c.earliest(c.complete(q))
	}
	var best Candidate
	found := false
	for candidate := range c.Candidates(q) {
		if !found || p.better(candidate, best) {
			best, found = candidate, true
		}
	}
	return best.Start, found
}

// FreeAt gives the hosts that can serve the query from start on.
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

// FirstFree gives the first hosts of order that can serve the query from start
// on, as many as its Quantity where there are so many. Where all hosts are asked,
// it is FreeAt in the given order, and looks at few lanes.
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

// Candidates walks the feasible starts in ascending order (paper 003 Algorithm
// 3): the ready time, the latest start, and each slot boundary and each boundary
// minus the duration between them.
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

// Windows walks the maximal runs of feasible starts in ascending order.
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

// MostFree is the largest number of hosts that are free together at any feasible
// start of the query, whatever its Quantity.
func (c *Calendar) MostFree(q Query) int {
	q = c.complete(q)
	most := 0
	for _, free := range levels(c.openings(&q, q.Hosts, q.Ready, q.latest())) {
		most = max(most, free)
	}
	return most
}

// complete fills in the hosts where the query names none.
func (c *Calendar) complete(q Query) Query {
	if q.Hosts == nil {
		q.Hosts = hostset.Full(c.Hosts())
	}
	return q
}
