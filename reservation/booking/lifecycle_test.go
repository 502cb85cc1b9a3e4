// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// carryOut sets the clock and returns what was carried out by then, each as
// "id event status".
func (s *scene) carryOut(t tester, now int64) (list []string) {
	t.Helper()
	s.now.Store(int64(at(now)))
	done, failed := s.bookings.CarryOut(t.Context())
	if len(failed) > 0 {
		t.Fatalf("at %d: %v", now, failed)
	}
	for _, h := range done {
		list = append(list, fmt.Sprintf("%s %s %s", h.Reservation.ID, h.Event.Type, h.Reservation.Status))
	}
	return list
}

// warned returns a request for 100 to 200 with a warning at 170.
func warned() reservation.Request {
	req := during(1, 100, 200)
	req.BeforeEnd = 30
	return req
}

func TestEventsHappenAtTheirTimes(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, warned()).ID
	for _, step := range []struct {
		now  int64
		want []string
	}{
		{99, nil},
		{100, []string{id + " start active"}},
		{100, nil},
		{169, nil},
		{170, []string{id + " before_end active"}},
		{199, nil},
		{200, []string{id + " end ended"}},
		{1000, nil},
	} {
		if diff := cmp.Diff(step.want, s.carryOut(t, step.now)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", step.now, diff)
		}
		s.check(t)
	}
	want := []reservation.Event{
		{Type: reservation.CreatedEvent, Time: at(0), State: reservation.EventDone, Done: at(0)},
		{Type: reservation.StartEvent, Time: at(100), State: reservation.EventDone, Done: at(100)},
		{Type: reservation.BeforeEndEvent, Time: at(170), State: reservation.EventDone, Done: at(170)},
		{Type: reservation.EndEvent, Time: at(200), State: reservation.EventDone, Done: at(200)},
	}
	if diff := cmp.Diff(want, s.get(t, id).Events); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if next, ok := s.bookings.NextClaim("a", at(0)); ok {
		t.Errorf("an ended reservation still holds %v", next)
	}
}

func TestWhatEndsMakesRoomForWhatStartsInTheSameSecond(t *testing.T) {
	s := newScene(t, named("a"))
	starts, ends := s.book(t, during(1, 200, 300)).ID, s.book(t, during(1, 100, 200)).ID
	s.carryOut(t, 150)
	if diff := cmp.Diff([]string{ends + " end ended", starts + " start active"}, s.carryOut(t, 200)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The service restarts after a pause, and the log records how late each event was.
func TestEventsThatWereMissedHappenLateInOrder(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, warned()).ID
	s.now.Store(int64(at(260)))
	s.restart(t)
	want := []string{id + " start active", id + " before_end active", id + " end ended"}
	if diff := cmp.Diff(want, s.carryOut(t, 260)); diff != "" {
		t.Errorf("carried out (-want +got):\n%s", diff)
	}
	var details []string
	for _, e := range s.get(t, id).Events {
		details = append(details, fmt.Sprintf("%s %s", e.Type, e.Detail))
	}
	want = []string{"created ", "start 2m40s after its time", "before_end 1m30s after its time", "end 1m0s after its time"}
	if diff := cmp.Diff(want, details); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestARestartForgetsNoEvent(t *testing.T) {
	s := newScene(t, named("a", "b"))
	first, second := s.book(t, warned()).ID, s.book(t, during(1, 150, 300)).ID
	for _, step := range []struct {
		now  int64
		want []string
	}{
		{120, []string{first + " start active"}},
		{170, []string{second + " start active", first + " before_end active"}},
		{200, []string{first + " end ended"}},
		{300, []string{second + " end ended"}},
	} {
		s.restart(t)
		if diff := cmp.Diff(step.want, s.carryOut(t, step.now)); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", step.now, diff)
		}
		s.check(t)
	}
}

func TestAChangeMovesTheEvents(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, warned()).ID
	s.change(t, id, moves(120, 220))
	if got := s.carryOut(t, 119); got != nil {
		t.Errorf("at 119: %v, want nothing yet", got)
	}
	if diff := cmp.Diff([]string{id + " start active"}, s.carryOut(t, 120)); diff != "" {
		t.Errorf("at 120 (-want +got):\n%s", diff)
	}
	s.carryOut(t, 190)
	s.change(t, id, ends(300))
	if diff := cmp.Diff([]string{id + " before_end active"}, s.carryOut(t, 270)); diff != "" {
		t.Errorf("at 270 (-want +got):\n%s", diff)
	}
	s.change(t, id, ends(280))
	if diff := cmp.Diff([]string{id + " end ended"}, s.carryOut(t, 280)); diff != "" {
		t.Errorf("at 280 (-want +got):\n%s", diff)
	}
}

func TestACanceledReservationHasNoEventsAhead(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, warned()).ID
	s.carryOut(t, 110)
	r, err := s.bookings.Cancel(t.Context(), owner, id)
	if err != nil {
		t.Fatal(err)
	}
	want := []reservation.Event{
		{Type: reservation.CreatedEvent, Time: at(0), State: reservation.EventDone, Done: at(0)},
		{Type: reservation.StartEvent, Time: at(100), State: reservation.EventDone, Done: at(110), Detail: "10s after its time"},
		{Type: reservation.CanceledEvent, Time: at(110), State: reservation.EventDone, Done: at(110)},
	}
	if diff := cmp.Diff(want, r.Events); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := s.carryOut(t, 1000); got != nil {
		t.Errorf("after the cancellation, %v was carried out", got)
	}
}

func TestTheLogSaysWhatAChangeChanged(t *testing.T) {
	s := newScene(t, named("a", "b"))
	id := s.book(t, during(1, 100, 200)).ID
	s.now.Store(int64(at(50)))
	r := s.change(t, id, planning.Change{Name: new("night run"), Quantity: new(2), Start: new(at(110)), End: new(at(190))})
	want := reservation.Event{Type: reservation.ChangedEvent, Time: at(50), State: reservation.EventDone, Done: at(50),
		Detail: fmt.Sprintf(`name from "" to "night run"`+", quantity from 1 to 2, start from %v to %v, end from %v to %v", at(100), at(110), at(200), at(190))}
	done := slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool { return e.State == reservation.EventDue })
	if diff := cmp.Diff(want, done[len(done)-1]); diff != "" {
		t.Errorf("last entry (-want +got):\n%s", diff)
	}
	if r.Updated != at(50) || r.Created != at(0) {
		t.Errorf("created %v and updated %v, want %v and %v", r.Created, r.Updated, at(0), at(50))
	}
}

func TestAChangeOfNothingLeavesNoTrace(t *testing.T) {
	s := newScene(t, named("a"))
	before := s.book(t, during(1, 100, 200))
	s.now.Store(int64(at(50)))
	after := s.change(t, before.ID, planning.Change{Quantity: new(1), End: new(at(200))})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("reservation (-before +after):\n%s", diff)
	}
}

func TestAClockThatStepsBackAfterPruningDoesNoHarm(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, during(1, 100, 200)).ID
	s.carryOut(t, 150)
	s.now.Store(int64(at(200)))
	s.bookings.Prune()
	s.now.Store(int64(at(199)))
	if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	s.check(t)
}

// stubborn are records that refuse changes of some reservations.
type stubborn struct {
	booking.Records
	refuses map[string]bool // by id
}

func (r *stubborn) Commit(ctx context.Context, c booking.Commit) error {
	if r.refuses[c.Revisions[0].Reservation.ID] {
		return fault.New(fault.Unavailable, "the disk is full")
	}
	return r.Records.Commit(ctx, c)
}

func TestAnEventThatFailsIsTriedAgainAndKeepsNoOtherBack(t *testing.T) {
	records := &stubborn{}
	s := newScene(t, named("a", "b", "c"), func(o *booking.Options) { records.Records, o.Records = o.Records, records })
	var ids []string
	for range 3 {
		ids = append(ids, s.book(t, during(1, 100, 200)).ID)
	}
	records.refuses = map[string]bool{ids[1]: true}
	for _, now := range []int64{100, 110} {
		s.now.Store(int64(at(now)))
		_, failed := s.bookings.CarryOut(t.Context())
		if len(failed) != 1 || !fault.Is(failed[ids[1]], fault.Unavailable) {
			t.Errorf("at %d failed: %v, want %s unavailable", now, failed, ids[1])
		}
		s.check(t)
	}
	for id, want := range map[string]reservation.Status{ids[0]: reservation.Active, ids[1]: reservation.Pending, ids[2]: reservation.Active} {
		if got := s.get(t, id).Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	records.refuses = nil
	if diff := cmp.Diff([]string{ids[1] + " start active"}, s.carryOut(t, 120)); diff != "" {
		t.Errorf("after it can be stored (-want +got):\n%s", diff)
	}
}

func TestTheDeskSaysThatSomethingMayBeDue(t *testing.T) {
	s := newScene(t, named("a"))
	woken := func() bool {
		select {
		case <-s.bookings.Woken():
			return true
		default:
			return false
		}
	}
	if woken() {
		t.Error("the service wakes before any booking")
	}
	r := s.book(t, during(1, 100, 200))
	if !woken() || woken() {
		t.Error("a booking must wake the service once")
	}
	s.change(t, r.ID, starts(50))
	if !woken() {
		t.Error("a change must wake the service")
	}
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), nil); err == nil || woken() {
		t.Error("a refusal must not wake the service")
	}
}

func TestTheTimeOfTheNextEventIsKnown(t *testing.T) {
	s := newScene(t, named("a"))
	next := func(when string, want span.Instant, some bool) {
		t.Helper()
		if got, ok := s.bookings.NextDue(); got != want || ok != some {
			t.Errorf("%s, the next event is at %v (%t), want %v (%t)", when, got, ok, want, some)
		}
	}
	next("before any booking", 0, false)
	r := s.book(t, during(1, 100, 200))
	next("after a booking", at(100), true)
	s.change(t, r.ID, starts(50))
	next("after a change to an earlier start", at(50), true)
	s.carryOut(t, 60)
	s.carryOut(t, 100) // the outdated one leaves
	next("after the start", at(200), true)
}

// A host that left the cloud still has its promises when it returns.
func TestAHostThatIsBackIsTheSameHost(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(2, 100, 200))
	s.hosts = named("b", "c")
	s.observe(t)
	_, err := s.bookings.Offer(t.Context(), owner, during(2, 150, 250))
	if got := refusal(t, err); got.Matched != 2 || got.Free != 1 || got.EarliestStart != at(200) {
		t.Errorf("without a: %d matching, %d free, earliest %v; want 2, 1 and %v", got.Matched, got.Free, got.EarliestStart, at(200))
	}
	if next, ok := s.bookings.NextClaim("a", at(0)); !ok || next != r.Span {
		t.Errorf("a is promised for %v, %v; want %v", next, ok, r.Span)
	}
	s.hosts = named("a", "b", "c")
	s.observe(t)
	_, err = s.bookings.Offer(t.Context(), owner, during(2, 150, 250))
	if got := refusal(t, err).Free; got != 1 {
		t.Errorf("with a again: %d free, want 1", got)
	}
	s.book(t, during(3, 200, 300))
	s.check(t)
}

// The service does not open on contradicting records.
func TestRecordsThatContradictEachOtherStopTheStart(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.book(t, during(1, 100, 200))
	r.ID, r.Claims = "again", []reservation.Claim{{Host: "a", Span: span.Span{Start: at(150), End: at(250)}}}
	if err := s.memory.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := booking.Open(t.Context(), s.options, s.snapshot(t)); err == nil {
		t.Error("the service opens although a host is promised twice")
	}
}
