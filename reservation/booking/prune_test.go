// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// A clock that runs ahead lets a service forget time that has not come yet. After the clock is
// set right, a new booking keeps its hosts.
func TestWhatIsBookedAfterTheClockWasSetBackKeepsItsHosts(t *testing.T) {
	for name, happens := range map[string]func(s *scene){
		"pending":          func(s *scene) { s.bookings.Prune() },
		"begun":            func(s *scene) { s.bookings.Prune(); s.passTo(t, at(100)) },
		"pruned once more": func(s *scene) { s.passTo(t, at(100)); s.bookings.Prune() },
	} {
		s := newScene(t, named("a"))
		s.now.Store(int64(at(100_000)))
		s.bookings.Prune()
		s.now.Store(int64(base))
		s.book(t, during(1, 100, 200))
		happens(s)
		r, err := s.bookings.Book(t.Context(), booking.Caller{ProjectID: "other"}, during(1, 150, 250), nil)
		if _, refused := err.(*reservation.Refusal); !refused {
			t.Errorf("%s: the host is booked twice, also by %s (%v)", name, r.ID, err)
		}
	}
}
