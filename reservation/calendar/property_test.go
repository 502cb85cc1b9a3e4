// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// scene is a calendar and the paper's list with the same whole-host claims. The unit of its
// times is random, so that claims are sometimes much shorter than a bucket of the index and
// sometimes longer than all of it.
type scene struct {
	hosts    int
	unit     span.Instant
	calendar *calendar.Calendar
	list     *paperList
	claims   []calendar.Claim
}

const sceneTimes = 40 // times are 0 … sceneTimes units

func drawScene(t *rapid.T) *scene {
	s := &scene{
		hosts: rapid.SampledFrom([]int{1, 3, 7, 64, 70}).Draw(t, "hosts"),
		unit:  rapid.SampledFrom([]span.Instant{1, 700, 1800, 3600, 9000, 4_000_000}).Draw(t, "unit"),
	}
	s.calendar = calendar.New(make([]resource.Vector, s.hosts), s.time(t, "index begins"))
	s.list = newPaperList(s.hosts)
	for range rapid.IntRange(0, 3*s.hosts).Draw(t, "claims") {
		s.tryAdd(t)
	}
	return s
}

func (s *scene) time(t *rapid.T, label string) span.Instant {
	return s.unit * span.Instant(rapid.IntRange(0, sceneTimes).Draw(t, label))
}

func (s *scene) span(t *rapid.T, label string) span.Span {
	start := s.time(t, label+" start")
	return span.Span{Start: start, End: start + s.unit*span.Instant(rapid.IntRange(1, 12).Draw(t, label+" length"))}
}

func (s *scene) tryAdd(t *rapid.T) {
	claim := calendar.Claim{Host: rapid.IntRange(0, s.hosts-1).Draw(t, "host"), Span: s.span(t, "claim")}
	taken := false
	for _, other := range s.claims {
		taken = taken || other.Host == claim.Host && other.Span.Overlaps(claim.Span)
	}
	if err := s.calendar.Add(claim); (err != nil) != taken {
		t.Fatalf("add %v: %v, but overlap with a claim is %v", claim, err, taken)
	}
	if !taken {
		s.claims = append(s.claims, claim)
		s.list.add(claim.Span, []int{claim.Host})
	}
}

func (s *scene) remove(t *rapid.T) {
	if len(s.claims) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.claims)-1).Draw(t, "which claim")
	claim := s.claims[i]
	if err := s.calendar.Remove(claim); err != nil {
		t.Fatal(err)
	}
	s.list.remove(claim.Span, []int{claim.Host})
	s.claims = append(s.claims[:i:i], s.claims[i+1:]...)
}

func (s *scene) query(t *rapid.T) calendar.Query {
	q := calendar.Query{
		Ready:    s.time(t, "ready"),
		Duration: int64(s.unit) * int64(rapid.IntRange(1, 15).Draw(t, "duration")),
		Quantity: rapid.IntRange(1, s.hosts).Draw(t, "quantity"),
	}
	q.Now = q.Ready - s.unit*span.Instant(rapid.IntRange(0, 5).Draw(t, "ahead"))
	q.Deadline = q.Ready.Add(q.Duration) + s.unit*span.Instant(rapid.IntRange(0, 30).Draw(t, "slack"))
	if rapid.Bool().Draw(t, "only some hosts") {
		q.Hosts = hostset.New(s.hosts)
		for h := range s.hosts {
			if rapid.Bool().Draw(t, "may serve") {
				q.Hosts.Add(h)
			}
		}
	}
	return q
}

func TestTheCalendarIsThePapersList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			if rapid.Bool().Draw(t, "add") {
				s.tryAdd(t)
			} else {
				s.remove(t)
			}
		}
		if diff := cmp.Diff(s.list.slots(), s.calendar.Slots()); diff != "" {
			t.Fatalf("slots (-list +calendar):\n%s", diff)
		}
		q := s.query(t)
		q.Hosts = nil // the paper's boundaries are those of all hosts
		want := s.list.find(q)
		if diff := cmp.Diff(want, candidates(s.calendar, q)); diff != "" {
			t.Fatalf("candidates of %+v (-list +calendar):\n%s", q, diff)
		}
	})
}

// choices holds the rules of paper 003 section 5, as the value that each policy minimizes.
var choices = map[calendar.Policy]func(calendar.Candidate) int64{
	calendar.PolicyFirstFit:           func(c calendar.Candidate) int64 { return int64(c.Start) },
	calendar.PolicyPEBestFit:          func(c calendar.Candidate) int64 { return int64(c.Free) },
	calendar.PolicyPEWorstFit:         func(c calendar.Candidate) int64 { return -int64(c.Free) },
	calendar.PolicyDurationBestFit:    func(c calendar.Candidate) int64 { return int64(c.End - c.Begin) },
	calendar.PolicyDurationWorstFit:   func(c calendar.Candidate) int64 { return -int64(c.End - c.Begin) },
	calendar.PolicyPEDurationBestFit:  func(c calendar.Candidate) int64 { return int64(c.Free) * int64(c.End-c.Begin) },
	calendar.PolicyPEDurationWorstFit: func(c calendar.Candidate) int64 { return -int64(c.Free) * int64(c.End-c.Begin) },
}

func TestEveryPolicyChoosesAsThePaperSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q := s.query(t)
		q.Hosts = nil
		all := s.list.find(q)
		for policy, value := range choices {
			got, ok := s.calendar.Find(q, policy)
			if ok != (len(all) > 0) {
				t.Fatalf("%s: found %v of %d candidates", policy, ok, len(all))
			}
			if !ok {
				continue
			}
			want := all[0]
			for _, c := range all {
				if value(c) < value(want) {
					want = c
				}
			}
			if got != want.Start {
				t.Errorf("%s: start %d, want %d of %v", policy, got, want.Start, all)
			}
		}
	})
}

// freeByHand counts the hosts that can serve q from start on, claim by claim.
func (s *scene) freeByHand(q calendar.Query, start span.Instant) int {
	free := 0
	for h := range s.hosts {
		can := (q.Hosts == nil || q.Hosts.Has(h)) && (q.AvailableFrom == nil || q.AvailableFrom[h] <= start)
		for _, claim := range s.claims {
			can = can && !(claim.Host == h && claim.Span.Overlaps(span.New(start, q.Duration)))
		}
		if can {
			free++
		}
	}
	return free
}

// firstFree returns the first free hosts, searched from the last host downwards.
func (s *scene) firstFree(q calendar.Query, start span.Instant) []int {
	return s.calendar.FirstFree(q, start, func(yield func(int) bool) {
		for host := s.hosts - 1; host >= 0 && yield(host); host-- {
		}
	})
}

// starts yields the whole units among the query's starts, and the second after each.
func (s *scene) starts(q calendar.Query) iter.Seq[span.Instant] {
	latest := q.Deadline - span.Instant(q.Duration)
	return func(yield func(span.Instant) bool) {
		for at := q.Ready; at <= latest; at += s.unit {
			if !yield(at) || s.unit > 1 && at < latest && !yield(at+1) {
				return
			}
		}
	}
}

// The test tries every start of the window, one by one.
func TestAnExhaustiveSearchAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q := s.query(t)
		if rapid.Bool().Draw(t, "some hosts sleep") {
			q.AvailableFrom = make([]span.Instant, s.hosts)
			for h := range q.AvailableFrom {
				q.AvailableFrom[h] = s.time(t, "usable from")
			}
		}
		// All times are whole units, so hosts become free at whole units and become busy a second
		// later. These starts show every change.
		most, first, found := 0, span.Instant(0), false
		var windows []calendar.Window
		inWindow := false
		for start := range s.starts(q) {
			free := s.freeByHand(q, start)
			most = max(most, free)
			if got := s.calendar.FreeAt(q, start).Count(); got != free {
				t.Fatalf("%d hosts free at %d, want %d", got, start, free)
			}
			if got := s.firstFree(q, start); len(got) != min(free, q.Quantity) {
				t.Fatalf("the first free hosts at %d are %v, want %d of them", start, got, min(free, q.Quantity))
			}
			if free < q.Quantity {
				inWindow = false
				continue
			}
			if !found {
				first, found = start, true
			}
			if !inWindow {
				windows = append(windows, calendar.Window{Start: start, Free: free})
				inWindow = true
			}
			windows[len(windows)-1].LatestStart = start
		}
		if got, ok := s.calendar.Find(q, calendar.PolicyFirstFit); ok != found || got != first {
			t.Errorf("first fit: %d (found: %v), want %d (%v)", got, ok, first, found)
		}
		if got := s.calendar.MostFree(q); got != most {
			t.Errorf("most free: %d, want %d", got, most)
		}
		if diff := cmp.Diff(windows, collect(s.calendar.Windows(q))); diff != "" {
			t.Errorf("windows of %+v (-want +got):\n%s", q, diff)
		}
	})
}

func collect[T any](walk func(func(T) bool)) []T {
	var list []T
	for item := range walk {
		list = append(list, item)
	}
	return list
}

func TestAddThenRemoveRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		q := s.query(t)
		slots, starts := s.calendar.Slots(), candidates(s.calendar, q)
		added := len(s.claims)
		for range 4 {
			s.tryAdd(t)
		}
		if err := s.calendar.Remove(s.claims[added:]...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slots, s.calendar.Slots()); diff != "" {
			t.Errorf("slots (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(starts, candidates(s.calendar, q)); diff != "" {
			t.Errorf("candidates (-before +after):\n%s", diff)
		}
	})
}

func TestARefusedAddOrRemoveChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		if len(s.claims) == 0 {
			return
		}
		before := s.calendar.Slots()
		free := calendar.Claim{Host: 0, Span: span.Span{Start: s.unit * 1000, End: s.unit * 1001}}
		if err := s.calendar.Add(free, s.claims[0]); err == nil {
			t.Fatalf("%v was claimed twice", s.claims[0])
		}
		if err := s.calendar.Remove(s.claims[0], free); err == nil {
			t.Fatalf("%v was released, but never held", free)
		}
		if diff := cmp.Diff(before, s.calendar.Slots()); diff != "" {
			t.Errorf("slots (-before +after):\n%s", diff)
		}
	})
}

func TestPruningForgetsOnlyThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		now := s.time(t, "now")
		q := s.query(t)
		q.Now, q.Ready, q.Deadline = now, now+q.Ready, now+q.Deadline
		want := candidates(s.calendar, q)
		s.calendar.Prune(now)
		if diff := cmp.Diff(want, candidates(s.calendar, q)); diff != "" {
			t.Errorf("candidates (-before +after):\n%s", diff)
		}
		for _, policy := range calendar.PaperPolicies {
			start, ok := s.calendar.Find(q, policy)
			if ok && s.freeByHand(q, start) < q.Quantity {
				t.Errorf("%s: start %d has %d hosts free", policy, start, s.freeByHand(q, start))
			}
		}
	})
}
