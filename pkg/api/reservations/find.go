// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// showRule is the rule about who sees a reservation, and maintainRule the one about who plans, changes and cancels
// maintenance.
const (
	showRule     = "reservations:get"
	maintainRule = "reservations:maintain"
)

const reservationKey = "reservation"

// loading admits callers that may act on the reservation in the path, and loads it; see find.
func (s API) loading(rule string) serving.Access {
	return serving.Loading(serving.OwnAndOthers(rule), s.find(rule))
}

// find loads the reservation in the path, if the caller may act on it; see serving.Asker.Reach. A rule about changes must
// allow them for maintenance too.
func (s API) find(rule string) serving.Step {
	return func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		r, err := s.Reader.Get(c.Request.Context(), id)
		err = by.Reach(rule, serving.Found{Err: err, ProjectID: r.ProjectID, Own: r.BelongsTo(by.ProjectID), Missing: booking.NotFound(id)})
		if err == nil && r.Maintenance && rule != showRule {
			err = by.Check(maintainRule, by.ProjectID)
		}
		if err != nil {
			c.Fail(err)
			return
		}
		c.Set(reservationKey, r)
		c.Changes(r.ID)
	}
}

func found(c *serving.Call) reservation.Reservation {
	return c.MustGet(reservationKey).(reservation.Reservation)
}
