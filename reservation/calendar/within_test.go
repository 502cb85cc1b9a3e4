// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// drawWithin draws disjoint spans in order.
func (s *scene) drawWithin(t *rapid.T) []span.Span {
	times := rapid.SliceOfNDistinct(rapid.IntRange(0, 2*sceneTimes), 0, 10, rapid.ID[int]).Draw(t, "within")
	slices.Sort(times)
	var within []span.Span
	for i := 0; i+1 < len(times); i += 2 {
		within = append(within, span.Span{Start: s.unit * span.Instant(times[i]), End: s.unit * span.Instant(times[i+1])})
	}
	return within
}

// exactly returns the query restricted to that start.
func exactly(q calendar.Query, start span.Instant) calendar.Query {
	q.Ready, q.Deadline = start, start.Add(q.Duration)
	return q
}

// startsOf returns the starts of a query that lie in the spans, one unit of the scene apart,
// since the calendar changes only at whole units.
func (s *scene) startsOf(q calendar.Query, within []span.Span) (list []span.Instant) {
	for start := q.Ready; start <= q.Deadline-span.Instant(q.Duration); start += s.unit {
		if slices.ContainsFunc(within, func(w span.Span) bool { return w.Covers(q.Window(start)) }) {
			list = append(list, start)
		}
	}
	return list
}

func TestTheFirstStartWithinSpansIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q, within := s.query(t), s.drawWithin(t)
		want, feasible := span.Instant(0), false
		for _, start := range s.startsOf(q, within) {
			if _, ok := s.calendar.Find(exactly(q, start), calendar.PolicyFirstFit); ok {
				want, feasible = start, true
				break
			}
		}
		if got, ok := s.calendar.FindWithin(q, calendar.PolicyFirstFit, within); ok != feasible || got != want {
			t.Fatalf("within %v: %v, %v; want %v, %v", within, got, ok, want, feasible)
		}
	})
}

// Every policy finds a start if there is one, and the policy for the most free hosts finds the
// start with the most.
func TestAPolicyChoosesAmongTheStartsWithinSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q, within := s.query(t), s.drawWithin(t)
		most, feasible := 0, false
		for _, start := range s.startsOf(q, within) {
			if free := s.calendar.FreeAt(q, start).Count(); free >= q.Quantity {
				most, feasible = max(most, free), true
			}
		}
		for _, p := range calendar.PaperPolicies {
			start, ok := s.calendar.FindWithin(q, p, within)
			if ok != feasible {
				t.Fatalf("%s finds a start: %v, want %v", p, ok, feasible)
			}
			if !ok {
				continue
			}
			free := s.calendar.FreeAt(q, start).Count()
			switch {
			case !slices.Contains(s.startsOf(q, within), start) || free < q.Quantity:
				t.Fatalf("%s starts at %v with %d of %d, within %v", p, start, free, q.Quantity, within)
			case p == calendar.PolicyPEWorstFit && free != most:
				t.Fatalf("%s starts where %d are free, want %d", p, free, most)
			}
		}
	})
}

// One span covers the window, or one that ends later does.
func TestWithinTheWholeWindowAPolicyChoosesAsEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q := s.query(t)
		within := []span.Span{{Start: q.Ready, End: q.Deadline + s.unit*span.Instant(rapid.IntRange(0, 1).Draw(t, "later"))}}
		for _, p := range calendar.PaperPolicies {
			want, feasible := s.calendar.Find(q, p)
			if got, ok := s.calendar.FindWithin(q, p, within); ok != feasible || got != want {
				t.Fatalf("%s: %v, %v; want %v, %v", p, got, ok, want, feasible)
			}
		}
	})
}

func TestTheFirstStartOfSlicesWithinSpansIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		capacity := resource.Vector{VCPUs: 4}
		for host := range s.hosts {
			s.calendar.SetCapacity(host, capacity)
		}
		for range rapid.IntRange(0, 2*s.hosts).Draw(t, "slices") {
			claim := calendar.Claim{
				Host: rapid.IntRange(0, s.hosts-1).Draw(t, "host of a slice"), Span: s.span(t, "slice"),
				Slice: resource.Vector{VCPUs: int64(rapid.IntRange(1, 4).Draw(t, "vcpus"))},
			}
			_ = s.calendar.Add(claim) // a claim that does not fit is left out
		}
		q := calendar.SliceQuery{
			Query: s.query(t), Shape: resource.Vector{VCPUs: int64(rapid.IntRange(1, 4).Draw(t, "shape"))},
			Affinity: rapid.SampledFrom([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity"),
		}
		within := s.drawWithin(t)
		want, feasible := span.Instant(0), false
		for _, start := range s.startsOf(q.Query, within) {
			at := q
			at.Query = exactly(q.Query, start)
			if _, ok := s.calendar.EarliestSlices(at); ok {
				want, feasible = start, true
				break
			}
		}
		if got, ok := s.calendar.EarliestSlicesWithin(q, within); ok != feasible || got != want {
			t.Fatalf("within %v: %v, %v; want %v, %v", within, got, ok, want, feasible)
		}
	})
}

// The runs have each start of a scene that is feasible and no other, in order.
func TestTheRunsWithinSpansHaveAllFeasibleStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		for host := range s.hosts {
			s.calendar.SetCapacity(host, resource.Vector{VCPUs: 2})
		}
		q, within := s.query(t), s.drawWithin(t)
		slice := calendar.SliceQuery{Query: q, Shape: resource.Vector{VCPUs: 2}} // as large as a host
		for name, walk := range map[string]iter.Seq[span.Span]{
			"hosts": s.calendar.StartsWithin(q, within), "slices": s.calendar.SliceStartsWithin(slice, within),
		} {
			runs := collect(walk)
			in := func(start span.Instant) bool {
				return slices.ContainsFunc(runs, func(run span.Span) bool { return run.Contains(start) })
			}
			for start := range s.starts(q) {
				inside := slices.ContainsFunc(within, func(w span.Span) bool { return w.Covers(q.Window(start)) })
				if want := inside && s.freeByHand(q, start) >= q.Quantity; in(start) != want {
					t.Fatalf("%s: the runs %v within %v have %d: %v, want %v", name, runs, within, start, in(start), want)
				}
			}
			for i, run := range runs {
				if run.Empty() || i > 0 && run.Start < runs[i-1].End {
					t.Fatalf("%s: the runs %v are empty or not in order", name, runs)
				}
			}
		}
	})
}
