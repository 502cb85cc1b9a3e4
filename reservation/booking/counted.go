// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"iter"
	"maps"

	"github.com/almanac-cloud/almanac/pkg/span"
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

// Counted returns the numbers of live reservations.
func (d *Service) Counted() Counted {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return Counted{maps.Clone(d.counted.ByStatus), d.counted.Degraded}
}

// Overdue yields the live reservations whose first event that is not done was due before t, the longest overdue first.
// They must not be changed.
func (d *Service) Overdue(t span.Instant) iter.Seq[*reservation.Reservation] {
	return d.state().live.byDue.until(t - 1)
}
