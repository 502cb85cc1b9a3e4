// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// within asks for a lease of that many seconds between two instants.
func within(start, end, duration int64, members ...reservation.MemberRequest) reservation.LeaseRequest {
	req := leaseOf(members...)
	req.Start, req.End, req.Duration, req.BeforeEnd = at(start), at(end), duration, at(end-600)
	return req
}

func TestALeaseWithADeadlineStartsWhenAllItsReservationsHaveRoom(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), func(o *booking.Options) { o.Defaults.Policy = calendar.PolicyPEWorstFit })
	s.book(t, during(3, 0, 3600))
	s.book(t, during(1, 3600, 5400)) // from then on, three hosts are free
	for name, tc := range map[string]struct {
		req      reservation.LeaseRequest
		start    int64
		quantity []int
	}{
		"one host":                   {within(600, 20_000, 3600, whole(1, 1)), 3600, []int{1}},
		"two, and what else is free": {within(600, 20_000, 3600, whole(1, 3)), 3600, []int{2}},
		"three":                      {within(600, 20_000, 3600, whole(3, 3)), 5400, []int{3}},
		"three, one by one":          {within(600, 20_000, 3600, whole(1, 1), whole(1, 1), whole(1, 1)), 5400, []int{1, 1, 1}},
		"none":                       {within(600, 20_000, 3600), 600, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := s.bookings.OfferLease(t.Context(), owner, tc.req)
			if err != nil {
				t.Fatal(err)
			}
			var quantity []int
			for _, r := range l.Reservations {
				quantity = append(quantity, r.Quantity)
				if r.BeforeEnd != 600 {
					t.Errorf("its owner is warned %d s before the end, want 600", r.BeforeEnd)
				}
			}
			if l.Span != span.New(at(tc.start), 3600) || l.BeforeEnd != l.Span.End-600 || !slices.Equal(quantity, tc.quantity) {
				t.Errorf("it lasts %v with %v, warned at %v", l.Span, quantity, l.BeforeEnd)
			}
		})
	}
	if left := s.leases(t); len(left) != 2 {
		t.Errorf("an offer has booked something: there are %d leases", len(left))
	}
}

func TestALeaseThatHasNoRoomBeforeItsDeadlineIsRefused(t *testing.T) {
	s := newScene(t, named("a", "b"))
	s.book(t, during(2, 0, 3600))
	_, err := s.bookings.BookLease(t.Context(), owner, within(0, 4000, 3600, whole(1, 2)))
	if r := refusal(t, err); r.Constraint != reservation.HostsFree || r.EarliestStart != at(3600) || r.LargestQuantity != 0 {
		t.Errorf("one reservation: %+v", *r)
	}
	s.book(t, during(1, 3600, 9000))
	_, err = s.bookings.BookLease(t.Context(), owner, within(0, 8000, 3600, whole(1, 1), whole(1, 1)))
	if r := refusal(t, err); r.Constraint != reservation.HostsFree || r.EarliestStart != at(9000) ||
		!strings.Contains(r.Message, "has room for 2 hosts during 1h0m0s, which 2 reservations of the request need together") {
		t.Errorf("two reservations: %+v", *r)
	}
	_, err = s.bookings.BookLease(t.Context(), owner, within(0, 8000, 3600, whole(1, 1), small(1)))
	if r := refusal(t, err); r.Constraint != reservation.HostsFree || r.EarliestStart != at(9000) || !strings.Contains(r.Message, "none has room for the whole request") {
		t.Errorf("a host and an instance: %+v", *r)
	}
	_, err = s.bookings.BookLease(t.Context(), owner, within(0, 3000, 3600, whole(1, 1)))
	if !says(fault.Invalid, "is less than 1h0m0s after")(err) {
		t.Errorf("a deadline too early: %v", err)
	}
}

func TestALeaseMovesToTheEarliestStartBeforeADeadline(t *testing.T) {
	s := newScene(t, named("a", "b"))
	l := s.lease(t, leaseOf(whole(1, 1), whole(1, 1))) // from 600 to 4200
	s.book(t, during(2, 4200, 6000))
	s.book(t, during(1, 9600, 9700))
	c := reservation.LeaseChange{Start: new(at(1200)), Deadline: new(at(20_000))}
	offered, err := s.bookings.OfferLeaseChange(t.Context(), owner, l.ID, c)
	if err != nil || offered.Span != span.New(at(6000), 3600) || offered.BeforeEnd != at(9000) {
		t.Fatalf("the offer is %v (%v)", offered.Span, err)
	}
	if now := s.leases(t)[0]; cmp.Diff(now.Lease, l.Lease) != "" {
		t.Errorf("after the offer, the lease is %+v, was %+v", now.Lease, l.Lease)
	}
	if moved := s.changeLease(t, l.ID, c); moved.Span != offered.Span {
		t.Errorf("the lease lasts %v, was offered %v", moved.Span, offered.Span)
	}
	c.Duration = 4000
	if moved := s.changeLease(t, l.ID, c); moved.Span != span.New(at(9700), 4000) {
		t.Errorf("a longer one lasts %v", moved.Span)
	}
	s.refuses(t, "no start before the deadline", isRefusal, func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{Start: new(at(1200)), Duration: 7000, Deadline: new(at(12_000))})
		return err
	})
	s.passTo(t, at(9800))
	s.refuses(t, "an active lease", says(fault.Invalid, "Cannot modify the start date of already started leases"), func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, c)
		return err
	})
	if longer := s.changeLease(t, l.ID, reservation.LeaseChange{Duration: 5000}); longer.Span != span.New(at(9700), 5000) {
		t.Errorf("with another duration, it lasts %v", longer.Span)
	}
}

func TestWhatHappensAtTheEndOfALeaseCanBeChanged(t *testing.T) {
	s := newScene(t, named("a", "b"), func(o *booking.Options) {
		o.Defaults.OnEndChoices = []reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve}
	})
	l := s.lease(t, leaseOf(whole(1, 1), small(1)))
	for _, r := range s.changeLease(t, l.ID, reservation.LeaseChange{OnEnd: new(reservation.OnEndShelve)}).Reservations {
		if r.OnEnd != reservation.OnEndShelve {
			t.Errorf("%s: on_end is %q", r.ID, r.OnEnd)
		}
	}
	for chosen, text := range map[reservation.OnEnd]string{reservation.OnEndLeave: "is not offered on this cloud", "explode": "explode"} {
		s.refuses(t, string(chosen), says(fault.Invalid, text), func() error {
			_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{OnEnd: &chosen})
			return err
		})
	}
}

// A lease with a deadline starts at the first instant at which a lease with fixed times would be
// booked. The window begins after now, because a filter may match fewer hosts now than later.
func TestNoEarlierStartHasRoomForALeaseWithADeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawHosts(t), limited(drawLimits(t)))
		for range rapid.IntRange(0, 8).Draw(t, "others") {
			_, _ = s.bookings.Book(t.Context(), rapid.SampledFrom(projects).Draw(t, "by"), drawRequest(t, s.clock()), nil)
		}
		start := s.clock().Add(drawTicks(t, 1, 10, "start"))
		req := reservation.LeaseRequest{Start: start, Duration: drawTicks(t, 1, 8, "duration")}
		req.End = start.Add(req.Duration + drawTicks(t, 0, 12, "slack"))
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			m := reservation.MemberRequest{Terms: drawRequest(t, s.clock()).Terms}
			m.Min, m.Max = drawBounds(t)
			req.Members = append(req.Members, m)
		}
		by := rapid.SampledFrom(projects).Draw(t, "by")
		got, err := s.bookings.OfferLease(t.Context(), by, req)
		if err != nil && !isRefusal(err) {
			return
		}
		for at := start; at.Add(req.Duration) <= req.End; at++ {
			fixed := req
			fixed.Start, fixed.End, fixed.Duration = at, at.Add(req.Duration), 0
			want, fixedErr := s.bookings.OfferLease(t.Context(), by, fixed)
			switch {
			case fixedErr != nil:
				continue
			case err != nil:
				t.Fatalf("it is refused: %v; it could start at %v", err, at)
			case got.Span != want.Span:
				t.Fatalf("it lasts %v; it could last %v", got.Span, want.Span)
			}
			return
		}
		if err == nil {
			t.Fatalf("it lasts %v, but no start has room", got.Span)
		}
	})
}

// Two transfers of the image take 96 s.
func TestAChangeWithADeadlineStartsWhenTheImageCanBeThere(t *testing.T) {
	s := newScene(t, named("a", "b"), looking(oneChannel()))
	r := s.book(t, withImage("A", during(1, 60, 160)))
	c := reservation.LeaseChange{Deadline: new(at(1000)), Members: []reservation.MemberChange{{ID: r.ID, Min: new(2), Max: new(2)}}}
	l, err := s.bookings.ChangeLease(t.Context(), owner, r.ID, c)
	if err != nil || l.Span != span.New(at(96), 100) {
		t.Errorf("it lasts %v, %v; want 100 s from 96 on", l.Span, err)
	}
}
