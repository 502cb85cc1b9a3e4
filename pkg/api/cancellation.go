// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// Instances finds instances in the cloud.
type Instances interface {
	// Of returns the instances created in the reservation, wherever they are now.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
}

// deleteReservation handles DELETE /v1/reservations/{id}.
func (s *server) deleteReservation(c *gin.Context) (any, error) {
	q := readQuery(c, "dry_run")
	dryRun := q.truth("dry_run")
	if q.err != nil {
		return nil, q.err
	}
	r := found(c)
	if dryRun {
		foreseen, err := s.cancellation(c.Request.Context(), r)
		if err != nil {
			return nil, err
		}
		return v1.CancellationAnswer{Cancellation: foreseen}, nil
	}
	ctx, end := awaited(c)
	defer end()
	if _, err := s.Booking.Cancel(ctx, asking(c).callerFor(&r), r.ID); err != nil {
		return nil, inDoubt(err, cancelInDoubt)
	}
	return nil, nil
}

// cancellation returns the effect of deleting r. A reservation that has not begun has no servers.
func (s *server) cancellation(ctx context.Context, r reservation.Reservation) (v1.Cancellation, error) {
	foreseen := v1.Cancellation{ID: r.ID, Name: r.Name, Status: string(r.Status), Servers: []v1.CanceledServer{}}
	if _, err := lifecycle.Next(r.Status, lifecycle.Cancel); err != nil {
		return foreseen, err
	}
	if s.Instances == nil || r.Status == reservation.Pending {
		return foreseen, nil
	}
	guests, err := s.Instances.Of(ctx, r)
	if err != nil {
		return foreseen, err
	}
	for _, i := range guests {
		foreseen.Servers = append(foreseen.Servers, v1.CanceledServer{ID: i.ID, Name: i.Name, Status: i.Status, Becomes: becomes[r.OnEnd]})
	}
	return foreseen, nil
}

// becomes maps on_end to its effect on servers.
var becomes = map[reservation.OnEnd]string{
	reservation.OnEndDelete: "deleted", reservation.OnEndStop: "stopped", reservation.OnEndShelve: "shelved", reservation.OnEndLeave: "left",
}
