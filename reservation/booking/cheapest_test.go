// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// priced returns an option that sets a tariff: each pair is how many seconds a price holds, and the price.
func priced(t *testing.T, pairs ...[2]int64) func(*booking.Options) {
	t.Helper()
	var steps []tariff.Step
	from := at(0)
	for _, pair := range pairs {
		steps = append(steps, tariff.Step{Span: span.New(from, pair[0]), Price: pair[1]})
		from = from.Add(pair[0])
	}
	curve, err := tariff.New(steps)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *booking.Options) {
		o.Tariff = func() *tariff.Reading { return &tariff.Reading{Curve: curve, Written: at(0)} }
	}
}

// cheapest asks for a host for so many seconds within a window.
func cheapest(from, until, seconds int64) reservation.Request {
	req := during(1, from, until)
	req.Duration, req.Policy = seconds, calendar.PolicyCheapest
	return req
}

// hearing remembers why bookings began by first fit.
func hearing(reasons map[string]planning.Fallback) func(*booking.Options) {
	return func(o *booking.Options) {
		o.FellBack = func(_ context.Context, r *reservation.Reservation, why planning.Fallback) { reasons[r.ID] = why }
	}
}

func TestABookingBeginsWhenItIsCheapest(t *testing.T) {
	reasons := map[string]planning.Fallback{}
	s := newScene(t, named("a"), priced(t, [2]int64{100, 5}, [2]int64{50, 1}, [2]int64{100, 3}), hearing(reasons))
	offer, err := s.bookings.Offer(t.Context(), owner, cheapest(0, 250, 60))
	if err != nil {
		t.Fatal(err)
	}
	r := s.book(t, cheapest(0, 250, 60))
	if r.Span != span.New(at(100), 60) || r.Policy != calendar.PolicyCheapest || r.PolicyReason() != "" || offer.Span != r.Span {
		t.Errorf("booked %v by %s, offered %v; want 50 s for 1 and 10 for 3", r.Span, r.Policy, offer.Span)
	}
	if r := s.book(t, cheapest(0, 250, 60)); r.Span != span.New(at(160), 60) {
		t.Errorf("with the cheapest time taken: %v, want the time after it", r.Span)
	}
	if len(reasons) != 0 {
		t.Errorf("fell back: %v", reasons)
	}
}

func TestABookingWithoutATariffTellsSoInItsAnswerAndItsLog(t *testing.T) {
	reasons := map[string]planning.Fallback{}
	s := newScene(t, named("a"), hearing(reasons))
	offer, err := s.bookings.Offer(t.Context(), owner, cheapest(0, 250, 60))
	if err != nil || offer.Fallback.Reason != planning.TariffMissing || offer.Terms.Policy != calendar.PolicyFirstFit {
		t.Errorf("offered %+v (%v), want first fit for the lack of a tariff", offer.Fallback, err)
	}
	if len(reasons) != 0 {
		t.Errorf("an offer is told as a booking: %v", reasons)
	}
	r := s.book(t, cheapest(0, 250, 60))
	const why = "first-fit instead of cheapest: there is no tariff now"
	if r.Span.Start != at(0) || r.Policy != calendar.PolicyFirstFit || r.PolicyReason() != why || reasons[r.ID] != (planning.Fallback{Reason: planning.TariffMissing, Text: why}) {
		t.Errorf("booked %v by %s, %q, told %+v", r.Span, r.Policy, r.PolicyReason(), reasons)
	}
	s.restart(t)
	if again := s.get(t, r.ID); again.PolicyReason() != why {
		t.Errorf("after a restart %q, want %q", again.PolicyReason(), why)
	}
}

// The image takes 48 s to the host, and the cheapest time begins before.
func TestWithoutItsImageTheCheapestStartIsNoneAndTheFirstPossibleOneIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		prices [][2]int64
		start  int64
		reason planning.FallbackReason
	}{
		"cheapest before the image is there": {[][2]int64{{40, 1}, {210, 3}}, 48, planning.TariffImage},
		"cheapest when the image is there":   {[][2]int64{{100, 3}, {150, 1}}, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reasons := map[string]planning.Fallback{}
			s := newScene(t, named("a"), looking(oneChannel()), priced(t, c.prices...), hearing(reasons))
			r := s.book(t, withImage("A", cheapest(0, 250, 30)))
			if r.Span.Start != at(c.start) || reasons[r.ID].Reason != c.reason || strings.Contains(r.PolicyReason(), "the image cannot be on the hosts") != (c.reason != "") {
				t.Errorf("booked %v, %q, told %+v; want a start at %d, %q", r.Span, r.PolicyReason(), reasons, c.start, c.reason)
			}
			if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
				t.Fatal(err)
			}
			if again := s.book(t, withImage("A", during(1, c.start, c.start+30))); again.Span != r.Span {
				t.Errorf("the same time is booked as %v, want %v", again.Span, r.Span)
			}
		})
	}
}
