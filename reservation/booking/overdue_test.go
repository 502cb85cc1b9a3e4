// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const day = 24 * 3600

// The service was off for more than a day, and may be off again. Only the time during which it
// retried counts.
func TestAnOverdueEndIsTriedForADayToo(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.EndEvent)
	id := s.book(t, during(1, 100, 200)).ID
	s.let(t, 100, 101)
	for _, back := range []int64{200 + 2*day, 200 + 4*day} {
		s.restart(t)
		cloud.tried = nil
		for now := back; now < back+day; now += 10 {
			s.let(t, now, now)
		}
		if n := len(cloud.tried); n < day/80 {
			t.Errorf("%d tries in the day after %v", n, at(back))
		}
		wantStatus(t, s, id, reservation.Ending)
	}
	s.let(t, 300+5*day, 300+5*day)
	wantStatus(t, s, id, reservation.Failed)
	s.check(t)
}
