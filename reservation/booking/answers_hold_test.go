// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// hold makes answers hold for so many seconds from now on.
func (s *scene) hold(t tester, seconds int64) {
	s.options.AnswersHold = seconds
	s.restart(t)
}

func TestARefusalNamesAStartThatSleepingHostsCanStillReachLater(t *testing.T) {
	hosts := named("a", "b")
	for i := range hosts {
		hosts[i].Power, hosts[i].BootSeconds = inventory.PowerSleeping, 300
	}
	s := newScene(t, hosts)
	s.hold(t, 120)
	soon := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: at(60), Duration: 600}
	_, err := s.bookings.Offer(t.Context(), owner, soon)
	r := refusal(t, err)
	if r.EarliestStart != at(420) {
		t.Fatalf("the earliest start is %v, want that of hosts that are ordered on in two minutes, %v", r.EarliestStart, at(420))
	}
	s.passTo(t, at(120))
	soon.Start = r.EarliestStart
	if _, err := s.bookings.Offer(t.Context(), owner, soon); err != nil {
		t.Errorf("two minutes later: %v", err)
	}
}

func TestARefusalNamesAsAsleepOnlyHostsThatAreNotCountedAsFree(t *testing.T) {
	hosts := named("a", "b", "c")
	for i, boot := range []int64{300, 90} {
		hosts[i].Power, hosts[i].BootSeconds = inventory.PowerSleeping, boot
	}
	s := newScene(t, hosts)
	s.hold(t, 120)
	_, err := s.bookings.Offer(t.Context(), owner, reservation.Request{Terms: reservation.Terms{Quantity: 3}, Start: at(100), Duration: 600})
	r := refusal(t, err)
	if r.Free != 2 || !strings.HasSuffix(r.Message, "; a sleep, and can be awake at "+at(420).String()) {
		t.Errorf("%d free: %s", r.Free, r.Message)
	}
}

// drawHold draws for how many seconds answers hold, and asks back when a drawn part of them has passed.
func drawHold(t *rapid.T, s *scene) (pass func()) {
	seconds := drawTicks(t, 1, 6, "answers hold")
	s.hold(t, seconds)
	return func() {
		s.passTo(t, s.clock().Add(rapid.Int64Range(1, seconds).Draw(t, "asked back after")))
	}
}

func TestWhatARefusalNamesCanBeRequestedAsLongAsAnswersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		req, pass := drawRequest(t, s.clock()), drawHold(t, s)
		_, err := s.bookings.Offer(t.Context(), owner, req)
		if !isRefusal(err) {
			return
		}
		refused := refusal(t, err)
		if req.Duration == 0 {
			req.Duration = int64(req.End - max(req.Start, s.clock()))
		}
		pass()
		s.askBack(t, req, refused)
	})
}

// askBack requests the start and the quantity that the refusal of a request names.
func (s *scene) askBack(t *rapid.T, req reservation.Request, refused *reservation.Refusal) {
	if n := refused.LargestQuantity; n > 0 && req.Start >= s.clock() {
		fewer := req
		fewer.Quantity = n
		if _, err := s.bookings.Offer(t.Context(), owner, fewer); err != nil {
			t.Fatalf("%v: with the largest quantity, %d: %v", refused, n, err)
		}
	}
	if start := refused.EarliestStart; start != 0 {
		exact := reservation.Request{Terms: req.Terms, Start: start, End: start.Add(req.Duration), Duration: req.Duration}
		if exact.End <= s.clock() {
			return
		}
		if _, err := s.bookings.Offer(t.Context(), owner, exact); err != nil {
			t.Fatalf("%v: at the earliest start, %v: %v", refused, start, err)
		}
	}
}

func TestWhatARefusedChangeNamesCanBeRequestedAsLongAsAnswersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		r, ok := drawLive(t, s)
		if !ok {
			return
		}
		pass := drawHold(t, s)
		c, by := drawChange(t, r), booking.Caller{ProjectID: r.ProjectID}
		offer := func(c planning.Change) error {
			_, err := s.bookings.OfferChange(t.Context(), by, r.ID, c)
			return err
		}
		err := offer(c)
		if !isRefusal(err) {
			return
		}
		refused, to := refusal(t, err), changedSpan(r, c)
		pass()
		if now, _ := s.bookings.Reservation(r.ID); now.Status != reservation.Pending || to.Start < s.clock() {
			return
		}
		if fewer := c; refused.LargestQuantity > 0 {
			if fewer.Quantity = &refused.LargestQuantity; offer(fewer) != nil {
				t.Fatalf("%v: with the largest quantity: %v", refused, offer(fewer))
			}
		}
		if later := c; refused.EarliestStart != 0 {
			later.Start, later.End = &refused.EarliestStart, new(refused.EarliestStart.Add(to.Seconds()))
			if err := offer(later); err != nil {
				t.Fatalf("%v: at the earliest start: %v", refused, err)
			}
		}
	})
}

// changedSpan returns the span that a reservation is to have.
func changedSpan(r reservation.Reservation, c planning.Change) span.Span {
	to := r.Span
	if c.Start != nil {
		to.Start = *c.Start
	}
	if c.End != nil {
		to.End = *c.End
	}
	return to
}

func TestWhatTheRefusalOfALeaseNamesCanBeRequestedAsLongAsAnswersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _, req := drawWorld(t)
		pass := drawHold(t, s)
		_, err := s.bookings.OfferLease(t.Context(), owner, req)
		if !isRefusal(err) {
			return
		}
		refused := refusal(t, err)
		pass()
		if start := refused.EarliestStart; start >= s.clock() {
			later := req
			later.Start, later.End = start, start+req.End-req.Start
			if _, err := s.bookings.OfferLease(t.Context(), owner, later); err != nil {
				t.Fatalf("%v: at the earliest start: %v", refused, err)
			}
		}
		if refused.LargestQuantity > 0 && len(req.Members) == 1 && req.Start >= s.clock() {
			m := req.Members[0]
			m.Min, m.Max = refused.LargestQuantity, refused.LargestQuantity
			req.Members = []reservation.MemberRequest{m}
			if _, err := s.bookings.OfferLease(t.Context(), owner, req); err != nil {
				t.Fatalf("%v: with the largest quantity: %v", refused, err)
			}
		}
	})
}

func TestEachWindowOfAvailabilityCanBeRequestedAsLongAsAnswersHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		req, pass := drawRequest(t, s.clock()), drawHold(t, s)
		if req.Duration == 0 {
			req.Duration = int64(req.End - max(req.Start, s.clock()))
		}
		windows, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
		if err != nil {
			return
		}
		pass()
		for _, w := range windows {
			for _, start := range []span.Instant{w.Start, w.LatestStart} {
				if start < s.clock() {
					continue
				}
				exact := reservation.Request{Terms: req.Terms, Start: start, Duration: req.Duration}
				if _, err := s.bookings.Offer(t.Context(), owner, exact); err != nil {
					t.Fatalf("%v of %+v: %v", start, w, err)
				}
			}
		}
	})
}
