// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// FindWithin returns the start that the policy chooses among those from which the whole duration is
// in one of the spans; false if none is feasible. The spans are sorted and do not touch. The first
// and the last start in each span are candidates like the ready time and the latest start of a
// query. With a span that contains the whole window, FindWithin equals Find.
func (c *Calendar) FindWithin(q Query, p Policy, within []span.Span) (span.Instant, bool) {
	starts, all := q.startsWithin(within)
	switch {
	case all:
		return c.Find(q, p)
	case len(starts) == 0:
		return 0, false
	case p == PolicyFirstFit:
		find := func(q Query) (span.Instant, bool) { return c.Find(q, PolicyFirstFit) }
		return firstWithin(q, starts, find, c.Windows)
	}
	best, found := p.Best(c.CandidatesWithin(q, within))
	return best.Start, found
}

// CandidatesWithin iterates over the candidates among which FindWithin chooses, in ascending order.
func (c *Calendar) CandidatesWithin(q Query, within []span.Span) iter.Seq[Candidate] {
	starts, all := q.startsWithin(within)
	switch {
	case all:
		return c.Candidates(q)
	case len(starts) == 0:
		return func(func(Candidate) bool) {}
	}
	q = c.complete(q)
	return func(yield func(Candidate) bool) {
		s := c.survey(&q)
		for _, w := range starts {
			s.starts = append(s.starts, w.Start, w.End-1)
		}
		s.sortStarts(q.Ready, q.latest())
		for candidate := range s.candidates(&q) {
			if lies(candidate.Start, starts) && !yield(candidate) {
				return
			}
		}
	}
}

// EarliestSlicesWithin returns the smallest start of EarliestSlices from which the whole
// duration is in one of the spans, as in FindWithin.
func (c *Calendar) EarliestSlicesWithin(q SliceQuery, within []span.Span) (span.Instant, bool) {
	starts, all := q.startsWithin(within)
	switch {
	case all:
		return c.EarliestSlices(q)
	case len(starts) == 0:
		return 0, false
	}
	of := func(part Query) SliceQuery { return SliceQuery{part, q.Shape, q.Affinity} }
	return firstWithin(q.Query, starts,
		func(part Query) (span.Instant, bool) { return c.EarliestSlices(of(part)) },
		func(part Query) iter.Seq[Window] { return slices.Values(c.SliceWindows(of(part))) })
}

// StartsWithin iterates over the maximal runs of feasible starts from which the whole duration is in one of the spans, as
// in FindWithin, in ascending order.
func (c *Calendar) StartsWithin(q Query, within []span.Span) iter.Seq[span.Span] {
	starts, _ := q.startsWithin(within)
	return parts(c.Windows(q), starts)
}

// SliceStartsWithin is StartsWithin for slices.
func (c *Calendar) SliceStartsWithin(q SliceQuery, within []span.Span) iter.Seq[span.Span] {
	starts, _ := q.startsWithin(within)
	return parts(slices.Values(c.SliceWindows(q)), starts)
}

// parts iterates over the parts of windows that are in one of the runs; both are in ascending order.
func parts(windows iter.Seq[Window], runs []span.Span) iter.Seq[span.Span] {
	return func(yield func(span.Span) bool) {
		rest := runs
		for w := range windows {
			for len(rest) > 0 && rest[0].End <= w.Start {
				rest = rest[1:]
			}
			for _, run := range rest {
				part := span.Span{Start: max(w.Start, run.Start), End: min(w.LatestStart+1, run.End)}
				if part.Empty() {
					break
				}
				if !yield(part) {
					return
				}
			}
			if len(rest) == 0 {
				return
			}
		}
	}
}

// startsWithin returns the starts of the query from which the whole duration is in one of the spans
// within, as spans of instants; empty if there are none. all reports whether these are all starts
// of the query, as one span.
func (q *Query) startsWithin(within []span.Span) (starts []span.Span, all bool) {
	every := span.Span{Start: q.Ready, End: q.latest() + 1}
	for _, w := range within {
		run := span.Span{Start: max(w.Start, every.Start), End: min(w.End-span.Instant(q.Duration)+1, every.End)}
		if !run.Empty() {
			starts = append(starts, run)
		}
	}
	return starts, len(starts) == 1 && starts[0] == every
}

// firstWithin returns the first feasible start of q in one of the runs. Often that is the first
// start from the first run on, which find returns quickly; otherwise firstWithin iterates over all
// later windows once.
func firstWithin(
	q Query, runs []span.Span, find func(Query) (span.Instant, bool), windows func(Query) iter.Seq[Window],
) (span.Instant, bool) {
	q.Ready, q.Deadline = runs[0].Start, runs[len(runs)-1].End.Add(q.Duration-1)
	start, ok := find(q)
	if !ok || lies(start, runs) {
		return start, ok
	}
	q.Ready = start
	for part := range parts(windows(q), runs) {
		return part.Start, true
	}
	return 0, false
}

// lies reports whether a start is in one of the runs, which are sorted.
func lies(start span.Instant, runs []span.Span) bool {
	i := spans(runs).endingAfter(start)
	return i < len(runs) && runs[i].Contains(start)
}
