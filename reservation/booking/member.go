// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// This file has what Change and Cancel do with a reservation that belongs to a lease.

// leaseOf returns the lease to which a live reservation belongs; "" if none.
func (d *Changes) leaseOf(ctx context.Context, by Caller, id string) (string, error) {
	e, err := d.find(ctx, by, id)
	if err != nil {
		return "", err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return e.r.Membership.LeaseID, nil
}

// changeMember is Change for a reservation of a lease whose times may change.
func (d *Changes) changeMember(ctx context.Context, by Caller, lease, id string, c planning.Change, p *permit) (reservation.Reservation, error) {
	return d.modifyMember(ctx, by, lease, id, "store the changed reservation", p, func(v planning.View, l reservation.LeaseRecord, r *reservation.Reservation) (*reservation.Lease, error) {
		if err := c.CheckLease(l, r); err != nil {
			return nil, err
		}
		plan, err := planning.PlanChange(v.Without(r), *r, c)
		if err != nil {
			return nil, err
		}
		var row *reservation.Lease
		if plan.Span != r.Span || plan.Terms.BeforeEnd != r.BeforeEnd {
			to := span.Span{Start: l.Span.Start, End: plan.Span.End}
			if plan.Span.Start != r.Span.Start {
				to.Start = plan.Span.Start
			}
			next := l.Lease
			next.Span, next.BeforeEnd = to, planning.WarningAt(to, plan.Terms.BeforeEnd)
			next.Updated, next.Version = v.Now, next.Version+1
			row = &next
		}
		*r = planning.ChangedAlone(*r, plan, v.Now)
		return row, nil
	})
}

// cancelMember is Cancel for a reservation of a lease.
func (d *Changes) cancelMember(ctx context.Context, by Caller, lease, id string) (reservation.Reservation, error) {
	return d.modifyMember(ctx, by, lease, id, "store the canceled reservation", nil, func(v planning.View, l reservation.LeaseRecord, r *reservation.Reservation) (*reservation.Lease, error) {
		if err := planning.CheckAlone(l, r); err != nil {
			return nil, err
		}
		if _, err := lifecycle.Next(r.Status, lifecycle.Cancel); err != nil {
			return nil, err
		}
		row, members := canceledLease(l, v.Now)
		*r = members[0]
		return row, nil
	})
}

// modifyMember decides on a change of one live reservation of a lease, and perhaps of the lease
// itself, and stores it. amend changes r.
func (d *Changes) modifyMember(
	ctx context.Context, by Caller, lease, id, doing string, p *permit,
	amend func(v planning.View, l reservation.LeaseRecord, r *reservation.Reservation) (*reservation.Lease, error),
) (reservation.Reservation, error) {
	this := func(r reservation.Reservation) bool { return r.ID == id }
	l, err := d.leases.modifyLease(ctx, by, lease, doing, p, func(v planning.View, l reservation.LeaseRecord) (*reservation.Lease, []reservation.Reservation, error) {
		members := slices.Clone(l.Reservations)
		i := slices.IndexFunc(members, this)
		if i < 0 {
			return nil, nil, NotFound(id)
		}
		r := &members[i]
		if err := by.expects("reservation", r.VersionText()); err != nil {
			return nil, nil, err
		}
		if !r.Status.Live() {
			return nil, nil, fault.New(fault.Conflict, "the reservation is %s", r.Status)
		}
		row, err := amend(v, l, r)
		return row, members, err
	})
	switch {
	case fault.Is(err, fault.NotFound) && fault.Of(err).Message == NoLease(lease).Message:
		return reservation.Reservation{}, fault.New(fault.Conflict, "the group of the reservation was canceled")
	case err != nil:
		return reservation.Reservation{}, err
	}
	return l.Reservations[slices.IndexFunc(l.Reservations, this)], nil
}

// checkLease fails with a Conflict fault if the reservation would differ after the change from others of its lease in what
// they have in common.
func (d *Changes) checkLease(ctx context.Context, by Caller, id string, c planning.Change) error {
	if !c.Shared() {
		return nil
	}
	lease, err := d.leaseOf(ctx, by, id)
	if err != nil || lease == "" {
		return err
	}
	l, err := d.options.Reader.Lease(ctx, lease)
	if err != nil {
		return err
	}
	for i := range l.Reservations {
		if r := &l.Reservations[i]; r.ID == id {
			return c.CheckLease(l, r)
		}
	}
	return NotFound(id)
}
