// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestARefusedExtensionOfALeaseNamesTheLatestEnd(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), pooled(1))
	l := s.lease(t, leaseOf(onHost("a"), onHost("b"), floating(1)))
	alone := s.book(t, only("c", during(1, 600, 4200)))
	s.book(t, only("b", during(1, 5000, 6000)))
	s.book(t, only("c", during(1, 5500, 6000)))
	s.lease(t, floatingFrom(5200, 6000, floating(1)))
	s.passTo(t, at(700))
	for id, latest := range map[string]int64{l.ID: 5000, alone.ID: 5500} {
		for name, c := range map[string]reservation.LeaseChange{
			"an end": {End: new(at(9000))}, "a length": {Duration: 8400}, "an end and a name": {Name: new("course"), End: new(at(5501))},
		} {
			_, err := s.bookings.ChangeLease(t.Context(), owner, id, c)
			_, offered := s.bookings.OfferLeaseChange(t.Context(), owner, id, c)
			for _, err := range []error{err, offered} {
				r := refusal(t, err)
				if r.LatestEnd != at(latest) || r.EarliestStart != 0 || !strings.Contains(r.Message, "; the latest end is "+at(latest).String()) {
					t.Errorf("%s: %+v", name, *r)
				}
			}
		}
		for _, end := range []int64{latest + 1, latest} {
			_, err := s.bookings.ChangeLease(t.Context(), owner, id, timed(0, end))
			if accepted := err == nil; accepted != (end == latest) {
				t.Errorf("an end at %d: %v", end, err)
			}
		}
		_, err := s.bookings.ChangeLease(t.Context(), owner, id, timed(0, 9000))
		if r := refusal(t, err); r.LatestEnd != 0 {
			t.Errorf("no later end is possible, and the refusal names %v", r.LatestEnd)
		}
	}
}

func TestAReservationThatBeginsWithOthersOfItsLeaseHasNoEarliestStartOfItsOwn(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(onHost("a"), whole(1, 1)))
	alone := s.book(t, during(1, 600, 4200))
	for id, moves := range map[string]bool{l.Reservations[1].ID: false, alone.ID: true} {
		_, err := s.bookings.Change(t.Context(), owner, id, planning.Change{Quantity: new(2)})
		_, offered := s.bookings.OfferChange(t.Context(), owner, id, planning.Change{Quantity: new(2)})
		for _, err := range []error{err, offered} {
			if r := refusal(t, err); (r.EarliestStart != 0) != moves {
				t.Errorf("it can move alone: %v, and the refusal is %+v", moves, *r)
			}
		}
	}
}
