// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// cancel handles DELETE /v1/reservations/{id}.
func (s API) cancel(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	r := found(c)
	if err := c.Expect("reservation", r.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		if err := s.alone(c.Request.Context(), &r); err != nil {
			return nil, err
		}
		foreseen, err := s.cancellation(c.Request.Context(), r)
		if err != nil {
			return nil, err
		}
		return v1.CancellationAnswer{Cancellation: foreseen}, nil
	}
	ctx, end := c.Awaited()
	defer end()
	if _, err := s.Changer.Cancel(ctx, serving.ChangerOf(c, &r), r.ID); err != nil {
		return nil, serving.InDoubt(err, cancelInDoubt)
	}
	return nil, nil
}

// alone fails with a Conflict fault if r can only be canceled with the other parts of its group.
func (s API) alone(ctx context.Context, r *reservation.Reservation) error {
	if r.Membership.LeaseID == "" || !r.Status.Live() {
		return nil
	}
	l, err := s.Leases.Lease(ctx, r.Membership.LeaseID)
	if err != nil {
		return err
	}
	return planning.CheckAlone(l, r)
}

// cancellation returns the effect of deleting r. A reservation that has not begun has no servers.
func (s API) cancellation(ctx context.Context, r reservation.Reservation) (v1.Cancellation, error) {
	foreseen := v1.Cancellation{ID: r.ID, Name: r.Name, Status: string(r.Status), Servers: []v1.CanceledServer{}}
	if _, err := lifecycle.Next(r.Status, lifecycle.Cancel); err != nil {
		return foreseen, err
	}
	if s.Instances == nil || !serving.Begun(&r) && r.Status != reservation.Starting {
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
