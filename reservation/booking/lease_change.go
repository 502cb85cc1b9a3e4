// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// ChangeLease changes a lease with all its reservations and stores it. If one of them is refused,
// everything stays as it was. A reservation that belongs to no lease is one of the same id.
//
// Besides a *reservation.Refusal and the errors of PlanChange, it fails with faults whose messages
// are those of Blazar: Denied for a warning outside the lease; Invalid for a start that has passed
// or would be too early, an end that is not after now and the start, a lease that is over, an
// unknown reservation, and bounds that exclude each other. A change that the status of a reservation
// does not allow is a Conflict. A lease that does not exist is NotFound.
//
// An end within the last LatestPast seconds ends the lease now: active reservations end, and one that
// still waits for its start is canceled. The new name is that of the lease alone; its reservations
// keep theirs.
func (d *Leases) ChangeLease(ctx context.Context, by Caller, id string, c reservation.LeaseChange) (reservation.LeaseRecord, error) {
	l, err := permitting(ctx, d.decider, func(p *permit) (reservation.LeaseRecord, error) {
		return d.modifyLease(ctx, by, id, "store the changed lease", p, func(v planning.View, l reservation.LeaseRecord) (*reservation.Lease, []reservation.Reservation, error) {
			if err := by.expects("lease", l.VersionText()); err != nil {
				return nil, nil, err
			}
			return planning.PlanLeaseChange(v, l, c)
		})
	})
	return l, d.explainLeaseChange(ctx, by, id, c, err)
}

// OfferLeaseChange returns the lease as ChangeLease would make it now, without doing it.
func (d *Leases) OfferLeaseChange(ctx context.Context, by Caller, id string, c reservation.LeaseChange) (offered reservation.LeaseRecord, err error) {
	_, err = d.modifyLease(ctx, by, id, "offer a changed lease", nil, func(v planning.View, l reservation.LeaseRecord) (*reservation.Lease, []reservation.Reservation, error) {
		if err := by.expects("lease", l.VersionText()); err != nil {
			return nil, nil, err
		}
		row, members, err := planning.PlanLeaseChange(v, l, c)
		if err != nil {
			return nil, nil, err
		}
		offered = reservation.LeaseRecord{Lease: l.Lease, Reservations: members}
		if row != nil {
			offered.Lease = *row
		} else if planning.IsOwn(l) {
			offered = reservation.OwnLease(members[0])
		}
		return nil, l.Reservations, nil
	})
	return offered, d.explainLeaseChange(ctx, by, id, c, err)
}

// CancelLease cancels the reservations of a lease that are not over or ending, and deletes the
// lease. Active floating IPs end at once. It fails with a NotFound fault if there is none. A
// reservation that belongs to no lease, and is over or ending, stays as it is, but is no longer shown
// as a lease.
func (d *Leases) CancelLease(ctx context.Context, by Caller, id string) (reservation.LeaseRecord, error) {
	return d.modifyLease(ctx, by, id, "store the canceled lease", nil, func(v planning.View, l reservation.LeaseRecord) (*reservation.Lease, []reservation.Reservation, error) {
		if err := by.expects("lease", l.VersionText()); err != nil {
			return nil, nil, err
		}
		row, members := canceledLease(l, v.Now)
		return row, members, nil
	})
}

// canceledLease returns a lease and its reservations after the lease was canceled; a nil lease if it
// is a reservation without one, which is canceled.
func canceledLease(l reservation.LeaseRecord, now span.Instant) (*reservation.Lease, []reservation.Reservation) {
	members, row := slices.Clone(l.Reservations), l.Lease
	for i, r := range members {
		if r.Kind == reservation.Addresses && r.Status == reservation.Active {
			members[i] = planning.EndedNow(r, now)
			continue
		}
		if next, err := planning.Canceled(r, now); err == nil {
			members[i] = next
		}
	}
	if planning.IsOwn(l) {
		if members[0].Status == reservation.Canceled {
			return nil, members
		}
		row.Version = 0 // a row that hides it is the first
	}
	row.Updated, row.Deleted, row.Version = now, now, row.Version+1
	return &row, members
}

// leaseAmendment decides on a change of a lease, whose reservations the view contains. It returns
// the lease after the change, nil if the lease itself stays, and all its reservations.
type leaseAmendment func(v planning.View, l reservation.LeaseRecord) (*reservation.Lease, []reservation.Reservation, error)

// modifyLease decides on a change of a lease and stores it. It decides again if the records have
// changed.
func (d *Leases) modifyLease(ctx context.Context, by Caller, id, doing string, p *permit, amend leaseAmendment) (reservation.LeaseRecord, error) {
	unlock, err := d.locked.lock(ctx, id)
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	defer unlock()
	var again retry
	for {
		again.decide(d.decider)
		l, err := d.modifyLeaseOnce(ctx, by, id, doing, p, amend)
		if err == nil {
			return l, nil
		}
		q := Recall{Project: l.ProjectID}
		for _, r := range l.Reservations {
			q.IDs, q.Hosts = append(q.IDs, r.ID), append(q.Hosts, d.versioned(&r)...)
		}
		if err := again.after(ctx, d.decider, err, q); err != nil {
			return reservation.LeaseRecord{}, err
		}
	}
}

// modifyLeaseOnce returns the lease that it decided on, also with an error of the records.
func (d *Leases) modifyLeaseOnce(
	ctx context.Context, by Caller, id, doing string, p *permit, amend leaseAmendment,
) (reservation.LeaseRecord, error) {
	l, err := d.options.Reader.Lease(ctx, id)
	if err == nil && !by.Admin && !l.BelongsTo(by.ProjectID) {
		err = NoLease(id)
	}
	if err != nil {
		return l, err
	}
	entries, unlock, err := d.lockMembers(ctx, l)
	if err != nil {
		return l, err
	}
	defer unlock()
	pools, err := d.pools(ctx, planning.NetworksOf(l.Reservations))
	if err != nil {
		return l, err
	}
	var row *reservation.Lease
	var booked []*attempt
	attempts, err := decide(ctx, d.decider, by.ProjectID, (*turns.Gate).EnterAhead, func() (attempts []*attempt, err error) {
		v, err := d.viewOfLease(by, &l, entries)
		if err != nil {
			return nil, err
		}
		v.Pools = pools
		next := l
		if row, next.Reservations, err = amend(v.View, l); err != nil {
			return nil, err
		}
		for i, r := range next.Reservations {
			if before := l.Reservations[i]; r.Version != before.Version {
				attempts = append(attempts, &attempt{
					entry: entries[r.ID], before: before, next: r, cause: causeOf(by, before, r), pools: v.versionsOf(&before, &r),
				})
			}
		}
		if row != nil {
			next.Lease = *row
		} else if planning.IsOwn(l) {
			next = reservation.OwnLease(next.Reservations[0])
		}
		if err := p.check(&l, &next); err != nil {
			return nil, err
		}
		if attempts, booked, err = d.enterAndBook(&v, by.RequestID, attempts); err != nil {
			return nil, err
		}
		l = next
		return attempts, nil
	})
	defer func() { leave(booked) }()
	if err != nil {
		return l, err
	}
	if row == nil && len(attempts) == 0 {
		return l, nil
	}
	if err := d.commitTogether(ctx, whole{lease: row}, attempts...); err != nil {
		return l, fmt.Errorf("%s: %w", doing, err)
	}
	return l, nil
}

// lockMembers locks the entries of the live reservations of a lease, which are sorted by id, and
// returns them by id and the function that unlocks them. It fails with ErrStale if memory does not
// have one of them.
func (d *Leases) lockMembers(ctx context.Context, l reservation.LeaseRecord) (entries map[string]*entry, leave func(), err error) {
	entries = make(map[string]*entry)
	leave = func() {
		for _, e := range entries {
			e.changing.Leave(byRequest)
		}
	}
	for _, r := range l.Reservations {
		if !r.Status.Live() {
			continue
		}
		e, known := d.entry(r.ID)
		if err = reservation.ErrStale; known {
			err = e.changing.Enter(ctx, byRequest)
		}
		if err != nil {
			leave()
			return nil, nil, err
		}
		entries[r.ID] = e
	}
	return entries, leave, nil
}

// viewOfLease returns the view for a decision about a lease, and replaces its live reservations by
// their states in the view. It fails with ErrStale if a change of one of them is in doubt, if one is
// over, or if memory is older than the lease.
func (d *Leases) viewOfLease(by Caller, l *reservation.LeaseRecord, entries map[string]*entry) (view, error) {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	members := slices.Clone(l.Reservations)
	for i := range members {
		r := &members[i]
		e, live := entries[r.ID]
		if !live {
			continue
		}
		if e.over || e.attempt != nil || e.r.Version < r.Version {
			return view{}, reservation.ErrStale
		}
		*r = e.r
	}
	l.Reservations = members
	if planning.IsOwn(*l) {
		*l = reservation.OwnLease(members[0])
	}
	return d.viewNow(by, l.ProjectID), nil
}

// NoLease returns the error for a lease that does not exist.
func NoLease(id string) *fault.Error { return fault.New(fault.NotFound, "there is no lease %s", id) }
