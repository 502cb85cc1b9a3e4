// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Under any limits, the service offers a start in and around the windows of the availability
// exactly if a window contains it.
func TestWindowsAreTheStartsThatAreAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		s.options.Limits = drawLimits(t)
		s.restart(t)
		req := drawRequest(t, s.clock())
		req.Start = s.clock() + 1 + span.Instant(drawTicks(t, 0, 20, "from"))
		req.Duration = drawTicks(t, 1, 8, "for")
		req.End = req.Start.Add(req.Duration + drawTicks(t, 0, 30, "slack"))
		windows, _, err := s.desk.Availability(t.Context(), owner, req, 1000)
		if err != nil {
			_, offered := s.desk.Offer(t.Context(), owner, req)
			if diff := cmp.Diff(refusal(t, offered), refusal(t, err)); diff != "" {
				t.Fatalf("the refusals differ (-offer +availability):\n%s", diff)
			}
		}
		latest := req.End - span.Instant(req.Duration)
		for _, start := range s.interesting(t, span.New(req.Start, req.Duration)) {
			if start > latest {
				break
			}
			shown := slices.ContainsFunc(windows, func(w calendar.Window) bool { return w.Start <= start && start <= w.LatestStart })
			exact := reservation.Request{Terms: req.Terms, Start: start, Duration: req.Duration}
			if _, err := s.desk.Offer(t.Context(), owner, exact); (err == nil) != shown {
				t.Fatalf("start %v available: %v; but the offer returns %v (%v)", start, shown, err, windows)
			}
		}
	})
}

// The limits allow no more than 100 s, no start more than 500 s ahead, and one host of the
// project at a time.
func TestTheAvailabilityKnowsTheLimitsThatABookingKnows(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(booking.Limits{Duration: 100, StartAhead: 500, Hosts: 1}))
	s.book(t, during(1, 200, 300)) // all that the project may hold then
	req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, End: at(10_000), Duration: 100}
	windows, _, err := s.desk.Availability(t.Context(), owner, req, 10)
	want := []calendar.Window{{Start: at(0), LatestStart: at(100), Free: 2}, {Start: at(300), LatestStart: at(500), Free: 2}}
	if diff := cmp.Diff(want, windows); err != nil || diff != "" {
		t.Errorf("%v; windows (-want +got):\n%s", err, diff)
	}
	long, late, many := req, req, req
	long.Duration, late.Start, many.Quantity = 101, at(501), 2
	for constraint, req := range map[reservation.Constraint]reservation.Request{
		reservation.MaxDuration: long, reservation.MaxStartAhead: late, reservation.MaxHosts: many,
	} {
		_, _, err := s.desk.Availability(t.Context(), owner, req, 10)
		if got := refusal(t, err); got.Constraint != constraint {
			t.Errorf("refused by %s: %s; want %s", got.Constraint, got.Message, constraint)
		}
	}
}

func TestAvailabilityShowsNoMoreWindowsThanAskedFor(t *testing.T) {
	s := newScene(t, named("a"))
	s.book(t, during(1, 100, 200))
	s.book(t, during(1, 300, 400))
	req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, End: at(1000), Duration: 50}
	for limit, want := range []int{0, 1, 2, 3, 3} {
		windows, matched, err := s.desk.Availability(t.Context(), owner, req, limit)
		if err != nil || len(windows) != want || matched != 1 {
			t.Errorf("up to %d: %d windows on %d hosts, %v; want %d on 1", limit, len(windows), matched, err, want)
		}
	}
	if _, _, err := s.desk.Availability(t.Context(), owner, reservation.Request{}, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("availability of nothing: %v, want invalid", err)
	}
}
