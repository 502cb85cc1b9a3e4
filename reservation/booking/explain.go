// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// explainExtension returns the error of a change, to which it adds the latest end that would be
// accepted if it is the refusal of an extension. A refusal keeps its earliest start unless the reservation
// cannot move without others of its lease. That takes some thirty plans, so they are made when
// the turn of the change is over, which all other changes wait for.
func (d *Changes) explainExtension(ctx context.Context, by Caller, id string, c planning.Change, err error) error {
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if refused && refusal.EarliestStart != 0 && d.checkLease(ctx, by, id, planning.Change{Start: &refusal.EarliestStart}) != nil {
		refusal.EarliestStart = 0 // it begins with others of its lease
	}
	if !refused || c.End == nil {
		return err
	}
	e, findErr := d.find(ctx, by, id)
	if findErr != nil {
		return err
	}
	if enterErr := d.deciding.Enter(ctx, by.ProjectID); enterErr != nil {
		return err
	}
	defer d.deciding.Leave(by.ProjectID)
	v, r, viewErr := d.viewOf(by, e)
	// The reservation may have ended since the refusal.
	if viewErr == nil && c.Extends(&r) && v.Now < r.Span.End {
		planning.NameLatestEnd(refusal, v.Without(&r), r, *c.End)
	}
	return err
}

// explainLeaseChange is explainExtension for a change of a lease.
func (d *Leases) explainLeaseChange(ctx context.Context, by Caller, id string, c reservation.LeaseChange, err error) error {
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused {
		return err
	}
	l, readErr := d.options.Reader.Lease(ctx, id)
	if readErr != nil {
		return err
	}
	several := len(l.Reservations) > 1
	if several {
		refusal.EarliestStart = 0 // it is that of one of them
	}
	entries := make(map[string]*entry)
	for _, r := range l.Reservations {
		if e, known := d.entry(r.ID); known {
			entries[r.ID] = e
		}
	}
	pools, poolsErr := d.pools(ctx, planning.NetworksOf(l.Reservations))
	if poolsErr != nil || d.deciding.Enter(ctx, by.ProjectID) != nil {
		return err
	}
	defer d.deciding.Leave(by.ProjectID)
	v, viewErr := d.viewOfLease(by, &l, entries)
	if viewErr == nil && several && c.Deadline == nil && len(refusal.BlockedBy) > 0 {
		refusal.BlockedBy = planning.BlocksOfChange(v.View, l, c)
	}
	// The lease may have ended since the refusal.
	if asked, extends := planning.EndAfter(c, l); viewErr == nil && extends && v.Now < l.Span.End {
		v.Pools = pools
		planning.NameLatestEndOfLease(refusal, v.View, l, c, asked)
	}
	return err
}

// explainLease returns the error for a lease. If it is a refusal, what it suggests is about the whole
// lease. That takes many plans, so they are made when the turn of the booking is over, which all other
// bookings wait for.
func (d *Leases) explainLease(ctx context.Context, by Caller, req reservation.LeaseRequest, err error) error {
	if _, refused := errors.AsType[*reservation.Refusal](err); !refused {
		return err
	}
	pools, poolsErr := d.pools(ctx, planning.RequestedNetworks(req))
	if poolsErr != nil || d.deciding.Enter(ctx, by.ProjectID) != nil {
		return err
	}
	defer d.deciding.Leave(by.ProjectID)
	v := d.view(by, by.ProjectID)
	v.Pools = pools
	if _, again := planning.NewLeasePlan(v.View, req); again != nil {
		return planning.ExplainLease(v.View, req, again)
	}
	return err // room has appeared since
}
