// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Leases are offers, bookings and changes of leases.
type Leases struct {
	*decider
	empty  locks[string] // of projects that book a lease without reservations
	locked locks[string] // of leases that change, by id
}

// BookLease makes a lease with all its reservations and stores it; if one of them is refused,
// nothing is stored. Errors are those of NewLeasePlan.
func (d *Leases) BookLease(ctx context.Context, by Caller, req reservation.LeaseRequest) (reservation.LeaseRecord, error) {
	if len(req.Members) == 0 {
		unlock, err := d.empty.lock(ctx, by.ProjectID)
		if err != nil {
			return reservation.LeaseRecord{}, err
		}
		defer unlock()
	}
	if err := d.mayBeEmpty(ctx, by, req); err != nil {
		return reservation.LeaseRecord{}, err
	}
	l, err := permitting(ctx, d.decider, func(p *permit) (reservation.LeaseRecord, error) { return d.bookLease(ctx, by, req, p) })
	return l, d.explainLease(ctx, by, req, err)
}

// OfferLease returns what BookLease would do now, without doing it.
func (d *Leases) OfferLease(ctx context.Context, by Caller, req reservation.LeaseRequest) (reservation.LeaseRecord, error) {
	if err := d.mayBeEmpty(ctx, by, req); err != nil {
		return reservation.LeaseRecord{}, err
	}
	pools, err := d.pools(ctx, planning.RequestedNetworks(req))
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return reservation.LeaseRecord{}, err
	}
	defer d.deciding.Leave(by.ProjectID)
	v := d.view(by, by.ProjectID)
	v.Pools = pools
	l, err := d.newLease(v.View, by, req)
	if err != nil {
		return l, planning.ExplainLease(v.View, req, err)
	}
	return l, nil
}

// mayBeEmpty returns a Denied fault if the request is for a lease without reservations and the project
// has the most of them. Requests at the same moment may exceed the limit by their number.
func (d *Leases) mayBeEmpty(ctx context.Context, by Caller, req reservation.LeaseRequest) error {
	most := d.limits().EmptyLeases
	if len(req.Members) > 0 || most == 0 {
		return nil
	}
	states, err := d.options.Reader.LeaseStates(ctx, reservation.LeaseQuery{ProjectID: by.ProjectID})
	if err != nil {
		return fmt.Errorf("count the leases without reservations: %w", err)
	}
	empty := 0
	for _, state := range states {
		if state.Reservations == 0 {
			empty++
		}
	}
	if empty >= most {
		return fault.New(fault.Denied, "the project has %d leases without reservations and may have %d: delete those that it does not need", empty, most)
	}
	return nil
}

// bookLease is BookLease with a permit.
func (d *Leases) bookLease(ctx context.Context, by Caller, req reservation.LeaseRequest, p *permit) (reservation.LeaseRecord, error) {
	var again retry
	for {
		again.decide(d.decider)
		booked, err := d.bookLeaseOnce(ctx, by, req, p)
		if err == nil {
			return booked, nil
		}
		q := Recall{Project: by.ProjectID}
		for _, r := range booked.Reservations {
			q.Hosts = append(q.Hosts, d.versioned(&r)...)
		}
		if err := again.after(ctx, d.decider, err, q); err != nil {
			return reservation.LeaseRecord{}, err
		}
	}
}

// bookLeaseOnce returns the lease that it decided on, also with an error of the records.
func (d *Leases) bookLeaseOnce(ctx context.Context, by Caller, req reservation.LeaseRequest, p *permit) (booked reservation.LeaseRecord, err error) {
	pools, err := d.pools(ctx, planning.RequestedNetworks(req))
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	attempts, err := decide(ctx, d.decider, by.ProjectID, (*turns.Gate).Enter, func() (attempts []*attempt, err error) {
		booked, attempts, err = d.reserveLease(ctx, by, req, pools, p)
		return attempts, err
	})
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	defer leave(attempts)
	if err := d.commitTogether(ctx, whole{lease: &booked.Lease}, attempts...); err != nil {
		return booked, fmt.Errorf("store the lease: %w", err)
	}
	return booked, nil
}

// leave unlocks the entries of attempts for other changes.
func leave(attempts []*attempt) {
	for _, a := range attempts {
		a.entry.changing.Leave(byRequest)
	}
}

// reserveLease plans a lease and adds the claims of its reservations to the calendar. Their entries
// are locked until they are stored.
func (d *Leases) reserveLease(
	ctx context.Context, by Caller, req reservation.LeaseRequest, pools map[string]address.Pool, p *permit,
) (reservation.LeaseRecord, []*attempt, error) {
	v := d.view(by, by.ProjectID)
	v.Pools = pools
	l, err := d.newLease(v.View, by, req)
	if err != nil {
		return reservation.LeaseRecord{}, nil, err
	}
	p.name(&l)
	if err := p.check(nil, &l); err != nil {
		return l, nil, err
	}
	var attempts []*attempt
	for _, r := range l.Reservations {
		a, err := newAttempt(ctx, &v, r, by)
		if err != nil {
			return l, nil, err
		}
		a.pools = v.versionsOf(&a.before, &a.next)
		attempts = append(attempts, a)
	}
	return l, attempts, d.enter(&v, attempts...)
}

// newLease decides on a lease, and returns it. Errors are those of NewLeasePlan.
func (d *Leases) newLease(v planning.View, by Caller, req reservation.LeaseRequest) (reservation.LeaseRecord, error) {
	plan, err := planning.NewLeasePlan(v, req)
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	l := reservation.LeaseRecord{Lease: reservation.Lease{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID, Name: req.Name,
		Span: plan.Span, BeforeEnd: plan.BeforeEnd, Events: req.Events, Created: v.Now, Updated: v.Now, Version: 1,
	}}
	for i, member := range plan.Members {
		r := d.newReservation(by, member, v.Now)
		r.ID = cmp.Or(req.Members[i].ID, r.ID)
		r.Membership = req.Members[i].Membership
		r.Membership.LeaseID = l.ID
		l.Reservations = append(l.Reservations, r)
	}
	return l, nil
}
