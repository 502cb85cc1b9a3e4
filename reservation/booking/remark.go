package booking

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// Remark enters a sentence about its images in the log of a reservation that has not begun.
// Nothing else changes. changed is false where the last such sentence is the same, and where
// the reservation has begun or is over.
func (d *Desk) Remark(ctx context.Context, id, sentence string) (changed bool, err error) {
	_, err = d.modify(ctx, Caller{Admin: true}, id, "store what is told of the images", func(v View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		next := r
		if r.Status == reservation.Pending && r.LastRemark() != sentence {
			next.Events = recent(append(slices.Clone(r.Events), happened(reservation.ImageEvent, v.Now, sentence)))
			next.Updated, next.Version = v.Now, r.Version+1
		}
		changed = next.Version != r.Version
		return next, reservation.Cause{Action: reservation.TellOfImage, Detail: sentence}, nil
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // it is over
		return false, nil
	}
	return changed && err == nil, err
}
