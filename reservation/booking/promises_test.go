// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// admitted returns the hosts that the reservation filter admits for a request of the owner's
// project with these hints.
func (s *scene) admitted(hint ...string) []string {
	req := placing.Request{ProjectID: owner.ProjectID}
	if len(hint) > 0 {
		req.Hints = map[string][]string{placing.ReservationHint: hint}
	}
	judge := filters.Reservation{Promises: s.bookings, Fence: filters.FenceAlways}.Judge(req, s.clock())
	var names []string
	for _, h := range s.hosts {
		if judge(h.Name).Admitted() {
			names = append(names, h.Name)
		}
	}
	return names
}

// A004_8 is check A004-8 of paper 004; the filter reads the service.
func TestA004_8(t *testing.T) {
	s := newScene(t, named("A", "B", "C"))
	blocker := s.book(t, only("B", during(1, 0, 10)))
	r := s.book(t, during(2, 0, 100))
	if diff := cmp.Diff([]string{"A", "C"}, claimed(r)); diff != "" {
		t.Fatalf("reserved (-want +got):\n%s", diff)
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, blocker.ID); err != nil {
		t.Fatal(err)
	}
	s.passTo(t, at(5))
	for name, tc := range map[string]struct{ hint, want []string }{
		"with the reservation's id": {[]string{r.ID}, []string{"A", "C"}},
		"without a hint":            {nil, []string{"B"}},
		"with an unknown id":        {[]string{"nobody's"}, nil},
		"with a canceled one's id":  {[]string{blocker.ID}, nil},
		"with an id among others":   {[]string{blocker.ID, r.ID}, []string{"A", "C"}},
	} {
		if diff := cmp.Diff(tc.want, s.admitted(tc.hint...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"A", "B", "C"}, s.admitted()); diff != "" {
		t.Errorf("after the cancellation (-want +got):\n%s", diff)
	}
	if got := s.admitted(r.ID); got != nil {
		t.Errorf("a canceled reservation still opens %v", got)
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second cancellation: %v, want a conflict", err)
	}
}

func TestTheHintFollowsTheReservation(t *testing.T) {
	s := newScene(t, named("a", "b"))
	id := s.book(t, during(1, 100, 200)).ID
	if got := s.admitted(id); got != nil {
		t.Errorf("before the start the hint opens %v", got)
	}
	s.passTo(t, at(150))
	if diff := cmp.Diff([]string{"a"}, s.admitted(id)); diff != "" {
		t.Errorf("while it runs (-want +got):\n%s", diff)
	}
	s.change(t, id, quantity(2))
	if diff := cmp.Diff([]string{"a", "b"}, s.admitted(id)); diff != "" {
		t.Errorf("after it grew (-want +got):\n%s", diff)
	}
	s.change(t, id, quantity(1))
	if diff := cmp.Diff([]string{"b"}, s.admitted()); diff != "" {
		t.Errorf("without the hint, after it shrank (-want +got):\n%s", diff)
	}
	s.now.Store(int64(at(200))) // its end is not carried out yet
	if got := s.admitted(id); got != nil {
		t.Errorf("after the end the hint opens %v", got)
	}
}

func TestTheNextClaimOfAHost(t *testing.T) {
	s := newScene(t, named("a"))
	s.book(t, during(1, 100, 200))
	s.book(t, during(1, 200, 250))
	s.book(t, cpus(1, 1, 300, 400))
	s.book(t, cpus(1, 1, 350, 450))
	for t0, want := range map[int64]span.Span{
		0: {Start: at(100), End: at(250)}, 100: {Start: at(100), End: at(250)}, 249: {Start: at(100), End: at(250)},
		250: {Start: at(300), End: at(450)}, 449: {Start: at(300), End: at(450)}, 450: {},
	} {
		if got, ok := s.bookings.NextClaim("a", at(t0)); got != want || ok == want.Empty() {
			t.Errorf("after %d: %v, %v; want %v", t0, got, ok, want)
		}
	}
	if got, ok := s.bookings.NextClaim("nobody", at(0)); ok {
		t.Errorf("an unknown host is promised for %v", got)
	}
}

// promised returns the first span from t0 on for which each host is promised.
func (s *scene) promised(t0 int64) map[string]span.Span {
	promised := map[string]span.Span{}
	for _, c := range s.bookings.Promised(at(t0)) {
		promised[c.Host] = c.Span
	}
	return promised
}

func TestTheDeskTellsWhichHostsArePromised(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	first := s.book(t, only("a", during(1, 100, 200)))
	s.book(t, only("a", during(1, 300, 400)))
	s.book(t, only("b", during(1, 200, 250)))
	a, b := span.Span{Start: at(100), End: at(200)}, span.Span{Start: at(200), End: at(250)}
	for t0, want := range map[int64]map[string]span.Span{
		0: {"a": a, "b": b}, 199: {"a": a, "b": b}, 200: {"a": a, "b": b}, // the end of the first is not carried out
	} {
		if diff := cmp.Diff(want, s.promised(t0)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", t0, diff)
		}
	}
	s.passTo(t, at(200))
	if r, live := s.bookings.Reservation(first.ID); live {
		t.Fatalf("the first reservation is %s", r.Status)
	}
	a = span.Span{Start: at(300), End: at(400)}
	if diff := cmp.Diff(map[string]span.Span{"a": a, "b": b}, s.promised(200)); diff != "" {
		t.Errorf("after its end is carried out (-want +got):\n%s", diff)
	}
}

func TestHostsOfActiveReservationsMayBeFilledUntilTheNextStartIsNear(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.book(t, only("a", during(1, 100, 200)))
	s.book(t, only("a", during(1, 200, 300)))
	s.book(t, only("b", during(1, 100, 300)))
	expect := func(when string, hosts ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(s.bookings.Fillable(s.clock(), 20))); !slices.Equal(got, hosts) {
			t.Errorf("%s %v may be filled, want %v", when, got, hosts)
		}
	}
	s.passTo(t, at(99))
	expect("before the start")
	s.now.Store(int64(at(100)))
	expect("while the start is not carried out")
	s.passTo(t, at(100))
	expect("while they run", "a", "b")
	s.passTo(t, at(179))
	expect("just before the next has to find it empty", "a", "b")
	s.passTo(t, at(180))
	expect("from then on", "b")
	s.now.Store(int64(at(200)))
	expect("while an end is not carried out", "b")
	s.passTo(t, at(200))
	expect("with the next one", "a", "b")
}

func TestARevisionOfPromisesPassesWithEachChange(t *testing.T) {
	s := newScene(t, named("a", "b"))
	before := s.bookings.Revision()
	changed := func(what string) {
		t.Helper()
		now := s.bookings.Revision()
		if now <= before {
			t.Errorf("%s: revision %d after revision %d", what, now, before)
		}
		before = now
	}
	id := s.book(t, during(1, 100, 200)).ID
	changed("a booking")
	s.change(t, id, quantity(2))
	changed("a change")
	if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	changed("a cancellation")
	s.bookings.Promised(at(0))
	s.bookings.Live(span.Span{Start: 0, End: span.Forever})
	if now := s.bookings.Revision(); now != before {
		t.Errorf("reading changes the revision to %d from %d", now, before)
	}
}

func TestTheDeskListsWhatIsLiveInASpan(t *testing.T) {
	s := newScene(t, named("a", "b"))
	second, first := s.book(t, during(1, 100, 200)).ID, s.book(t, during(1, 50, 150)).ID
	third := s.book(t, during(1, 200, 300)).ID
	for w, want := range map[span.Span][]string{
		{Start: 0, End: span.Forever}:       {first, second, third},
		{Start: at(150), End: at(200)}:      {second},
		{Start: at(199), End: at(201)}:      {second, third},
		{Start: at(300), End: span.Forever}: nil,
	} {
		ids := slices.Collect(func(yield func(string) bool) {
			for _, r := range s.bookings.Live(w) {
				if !yield(r.ID) {
					return
				}
			}
		})
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("in %v (-want +got):\n%s", w, diff)
		}
	}
	if r, ok := s.bookings.Reservation(first); !ok || r.Status != reservation.Pending {
		t.Errorf("%s is %s, %v; want pending", first, r.Status, ok)
	}
	if _, ok := s.bookings.Reservation("nobody's"); ok {
		t.Error("the service returns an unknown reservation")
	}
}
