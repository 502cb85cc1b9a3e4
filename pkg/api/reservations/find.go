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

// find loads the reservation in the path. The rule decides about a reservation of the caller's own
// project, and the rule with the suffix _all_projects about any other: for callers that it denies,
// that reservation does not exist. A rule about changes must allow them for maintenance too.
func (s API) find(rule string) serving.Step {
	return func(c *serving.Call) {
		by, id := c.Asker(), c.PathID()
		r, err := s.Reader.Get(c.Request.Context(), id)
		if err == nil && !r.BelongsTo(by.ProjectID) {
			if by.May(rule+"_all_projects", r.ProjectID) {
				act(c, r, rule)
				return
			}
			err = booking.NotFound(id)
		}
		// A caller that may not act on its own reservations must not learn which ones exist.
		if denied := by.Check(rule, by.ProjectID); denied != nil {
			err = denied
		}
		if err != nil {
			c.Fail(err)
			return
		}
		act(c, r, rule)
	}
}

// act lets a call act on a reservation that its rule allows.
func act(c *serving.Call, r reservation.Reservation, rule string) {
	by := c.Asker()
	if r.Maintenance && rule != showRule {
		if err := by.Check(maintainRule, by.ProjectID); err != nil {
			c.Fail(err)
			return
		}
	}
	c.Set(reservationKey, r)
	c.Changes(r.ID)
}

func found(c *serving.Call) reservation.Reservation {
	return c.MustGet(reservationKey).(reservation.Reservation)
}
