package upkeep

import (
	"context"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// leftovers are reservations that are over, by the ids of instances that they have left
// on a host.
type leftovers map[string]reservation.Reservation

// leftOn returns what reservations that are over have left among the strangers on a
// host: instances with a flavor of such a reservation, and those that came in by its hint
// and are on a host that it had. Records decide whether it is over; an instance whose
// reservation has no record is not among them.
func (s *Steward) leftOn(ctx context.Context, host string, strangers []inventory.Instance) (leftovers, error) {
	var ids []string
	for _, i := range strangers {
		if id := i.ReservationID(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := s.Records.Recall(ctx, booking.Recall{Since: math.MaxInt64, IDs: ids})
	if err != nil {
		return nil, told(err, "read the reservations that instances on a host belong to")
	}
	left := leftovers{}
	for _, i := range strangers {
		for _, r := range known.Reservations {
			bound := i.Flavor.ExtraSpecs[inventory.ReservationMark] != ""
			if r.ID == i.ReservationID() && !r.Status.Live() && (bound || slices.Contains(r.HostNames(), host)) {
				left[i.ID] = r
			}
		}
	}
	return left, nil
}

// forLeft returns what becomes of an instance that a reservation which is over has left:
// what its owner has chosen, where that takes it off the host, else what the operator has.
// One that was to migrate and has not until there is no more time for it is shelved.
func (r Rules) forLeft(i *inventory.Instance, chosen reservation.OnEnd, early bool) Order {
	switch {
	case i.Status == "VERIFY_RESIZE": // it has migrated, and that is confirmed
		return MigrateGuest
	case chosen == reservation.Delete:
		return DeleteGuest
	case chosen == reservation.Shelve:
		return ShelveGuest
	case r.Left == MigrateGuest && !early:
		return ShelveGuest
	}
	return r.Left
}

// Departure is that an instance which a reservation has left makes room for the next one.
type Departure struct {
	Instance inventory.Instance
	Order    Order
	// Reservation is the one that is over.
	Reservation string
	At          span.Instant
}

// tellLeft tells the owner of an instance that his reservation, which is over, has left.
func (s *Steward) tellLeft(ctx context.Context, over reservation.Reservation, do errand) {
	if s.TellLeft == nil || over.ID == "" {
		return
	}
	if err := s.TellLeft(ctx, Departure{do.instance, do.order, over.ID, s.Now()}); err != nil {
		s.Log.WarnContext(ctx, "the owner of an instance was not told that it makes room", "instance", do.instance.ID, "error", err)
	}
}
