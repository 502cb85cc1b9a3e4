package booking

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// Remark adds a sentence about the image to the log of a reservation that has not started. It
// changes nothing else. changed is false if the newest such sentence is the same, or if the
// reservation has started or is over.
func (d *Service) Remark(ctx context.Context, id, sentence string) (changed bool, err error) {
	_, err = d.modify(ctx, Caller{Admin: true}, id, "store the remark about the image", func(v View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		next := r
		if r.Status == reservation.Pending && r.LastRemark() != sentence {
			next.Events = recent(append(slices.Clone(r.Events), happened(reservation.ImageEvent, v.Now, sentence)))
			next.Updated, next.Version = v.Now, r.Version+1
		}
		changed = next.Version != r.Version
		return next, reservation.Cause{Action: reservation.ActionRemark, Detail: sentence}, nil
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // it is over
		return false, nil
	}
	return changed && err == nil, err
}
