// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// leftovers contains the ended reservations that have left instances on a host, by the ids of these
// instances.
type leftovers map[string]reservation.Reservation

// leftOn returns which of the foreign instances on a host were left by ended reservations: those
// with a flavor of such a reservation, and those that were placed by its hint and are on a host
// that it had. A reservation is over if its record shows that; an instance whose reservation has no
// record is not included.
func (s *Enforcer) leftOn(ctx context.Context, host string, foreign []inventory.Instance) (leftovers, error) {
	var ids []string
	for _, i := range foreign {
		if id := i.ReservationID(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	known, err := booking.Stored(ctx, s.Records, ids)
	if err != nil {
		return nil, wrapForUser(err, "read the reservations of the instances on a host")
	}
	left := leftovers{}
	for _, i := range foreign {
		for _, r := range known {
			bound := i.Flavor.ExtraSpecs[inventory.ReservationMark] != ""
			if r.ID == i.ReservationID() && !r.Status.Live() && (bound || slices.Contains(r.HostNames(), host)) {
				left[i.ID] = r
			}
		}
	}
	return left, nil
}

// forLeft returns the order for an instance that an ended reservation has left. It is the
// operator's choice, except that with the owner's on_end delete the instance is always deleted, and
// with shelve never. early is true if there is still time to migrate; later the instance is shelved
// instead.
func (r Rules) forLeft(i *inventory.Instance, chosen reservation.OnEnd, early bool) Order {
	switch {
	case i.Status == "VERIFY_RESIZE": // it has migrated; the order confirms that
		return OrderMigrate
	case chosen == reservation.OnEndDelete:
		return OrderDelete
	case chosen == reservation.OnEndShelve && r.Left == OrderDelete:
		return OrderShelve
	case r.Left == OrderMigrate && !early:
		return OrderShelve
	}
	return r.Left
}

// Departure is the notification that an instance which an ended reservation left makes room for the
// next reservation.
type Departure struct {
	Instance inventory.Instance
	Order    Order
	// Reservation is the id of the ended reservation.
	Reservation string
	At          span.Instant
}

// tellLeft notifies the owner of an instance that was left by their ended reservation.
func (s *Enforcer) tellLeft(ctx context.Context, over reservation.Reservation, do instanceOrder) {
	if s.TellLeft == nil || over.ID == "" {
		return
	}
	if err := s.TellLeft(ctx, Departure{do.instance, do.order, over.ID, s.Now()}); err != nil {
		s.Log.WarnContext(ctx, "could not notify the owner of an instance that it makes room", "instance", do.instance.ID, "error", err)
	}
}
