// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"github.com/almanac-cloud/almanac/reservation"
)

// Counted are numbers of live reservations. They are counted as reservations change, so that reading them takes the
// same time however many there are.
type Counted struct {
	ByStatus map[reservation.Status]int
	Degraded int // that lack a host
}

// add counts r times times.
func (c *Counted) add(r *reservation.Reservation, times int) {
	c.ByStatus[r.Status] += times
	if r.Degraded != "" {
		c.Degraded += times
	}
}
