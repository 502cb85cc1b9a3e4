// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// OfferChange returns what Change would do now, without doing it.
func (d *Service) OfferChange(ctx context.Context, by Caller, id string, c planning.Change) (planning.Plan, error) {
	if err := d.checkLease(ctx, by, id, c); err != nil {
		return planning.Plan{}, err
	}
	var again retry
	for {
		again.decide(d)
		var plan planning.Plan
		_, err := d.amend(ctx, by, id, func(v planning.View, r reservation.Reservation) (_ reservation.Reservation, _ reservation.Cause, err error) {
			plan, err = planning.PlanChange(v.Without(&r), r, c)
			return r, reservation.Cause{}, err
		})
		if !errors.Is(err, reservation.ErrStale) {
			return plan, d.explainExtension(ctx, by, id, c, err)
		}
		if err := again.after(ctx, d, err, Recall{IDs: []string{id}}); err != nil {
			return planning.Plan{}, err
		}
	}
}

// Change changes a reservation and stores it. A refused or failed change leaves the
// reservation as it was. If it is the only one of a lease, its times are those of the lease; if
// there are others, a change of its times is a Conflict fault.
func (d *Service) Change(ctx context.Context, by Caller, id string, c planning.Change) (reservation.Reservation, error) {
	r, err := permitting(ctx, d, func(p *permit) (reservation.Reservation, error) { return d.changeWith(ctx, by, id, c, p) })
	return r, d.explainExtension(ctx, by, id, c, err)
}

// changeWith is Change with a permit, which is about the whole lease.
func (d *Service) changeWith(ctx context.Context, by Caller, id string, c planning.Change, p *permit) (reservation.Reservation, error) {
	if c.Start != nil || c.End != nil || p != nil {
		lease, err := d.leaseOf(ctx, by, id)
		if err != nil {
			return reservation.Reservation{}, err
		}
		if lease != "" {
			return d.changeMember(ctx, by, lease, id, c, p)
		}
	}
	return d.modify(ctx, by, id, "store the changed reservation", func(v planning.View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		plan, err := planning.PlanChange(v.Without(&r), r, c)
		if err != nil {
			return r, reservation.Cause{}, err
		}
		next := changedAlone(r, plan, v.Now)
		return next, causeOf(by, r, next), p.checkOwn(r, next)
	})
}

// Cancel cancels a reservation. The claims that it has used stay in its record; its other
// claims are released. If it is the only one of a lease, the lease is canceled; if there are others,
// Cancel returns a Conflict fault.
func (d *Service) Cancel(ctx context.Context, by Caller, id string) (reservation.Reservation, error) {
	lease, err := d.leaseOf(ctx, by, id)
	if err != nil {
		return reservation.Reservation{}, err
	}
	if lease != "" {
		return d.cancelMember(ctx, by, lease, id)
	}
	return d.modify(ctx, by, id, "store the canceled reservation", func(v planning.View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		next, err := planning.Canceled(r, v.Now)
		return next, causeOf(by, r, next), err
	})
}

// causeOf returns the cause of a change at a caller's request.
func causeOf(by Caller, before, next reservation.Reservation) reservation.Cause {
	cause := reservation.Cause{Action: reservation.ActionModify, UserID: by.UserID, RequestID: by.RequestID, Detail: planning.Difference(before, next)}
	if next.Status == reservation.Canceled {
		cause.Action = reservation.ActionCancel
	}
	return cause
}

// amendment decides on a change of a reservation, which the view contains. It returns the
// reservation after the change and the cause, or the unchanged reservation if there is nothing to
// change.
type amendment func(v planning.View, r reservation.Reservation) (next reservation.Reservation, cause reservation.Cause, err error)

// modify decides on a change of a reservation and stores it. It decides again if the records
// have changed.
func (d *Service) modify(ctx context.Context, by Caller, id, doing string, amend amendment) (reservation.Reservation, error) {
	var again retry
	for {
		again.decide(d)
		a, err := d.modifyOnce(ctx, by, id, doing, amend)
		q := Recall{IDs: []string{id}}
		switch {
		case err == nil && (again.fresh || a.next.Version != a.before.Version):
			return a.next, nil
		case err == nil:
			// The decision to store nothing might differ on newer records.
			again.fresh = true
			if err := d.poll(ctx, q); err != nil {
				return reservation.Reservation{}, err
			}
			continue
		}
		if a != nil {
			q.Hosts, q.Project = d.versioned(&a.next), a.next.ProjectID
		}
		if err := again.after(ctx, d, err, q); err != nil {
			return reservation.Reservation{}, err
		}
	}
}

func (d *Service) modifyOnce(ctx context.Context, by Caller, id, doing string, amend amendment) (*attempt, error) {
	a, err := d.amend(ctx, by, id, amend)
	if err != nil || a.next.Version == a.before.Version {
		return a, err
	}
	defer a.entry.changing.Leave(byRequest)
	if err := d.commit(ctx, a); err != nil {
		return a, fmt.Errorf("%s: %w", doing, err)
	}
	return a, nil
}

// amend decides on a change and begins it unless nothing changes. If it begins the change, the
// entry is locked when amend returns.
func (d *Service) amend(ctx context.Context, by Caller, id string, amend amendment) (a *attempt, err error) {
	e, err := d.find(ctx, by, id)
	if err != nil {
		return nil, err
	}
	if err := e.changing.Enter(ctx, byRequest); err != nil {
		return nil, err
	}
	defer func() {
		if a == nil || err != nil || a.next.Version == a.before.Version {
			e.changing.Leave(byRequest)
		}
	}()
	// A start or an end may be waiting for this entry, so the change goes ahead in the line.
	return decide(ctx, d, by.ProjectID, (*turns.Gate).EnterAhead, func() (*attempt, error) { return d.amendNow(by, e, amend) })
}

func (d *Service) amendNow(by Caller, e *entry, amend amendment) (*attempt, error) {
	v, r, err := d.viewOf(by, e)
	if err != nil {
		return nil, err
	}
	next, cause, err := amend(v.View, r)
	if err != nil {
		return nil, err
	}
	a := &attempt{entry: e, before: r, next: next, cause: cause}
	if next.Version == r.Version {
		return a, nil
	}
	return a, d.enterChanges(&v, a)
}

// viewOf returns the view for a decision about a live reservation, and the reservation, whose entry
// the caller has locked. It fails with ErrStale if a change of it is in doubt or if it is over.
func (d *Service) viewOf(by Caller, e *entry) (view, reservation.Reservation, error) {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	if e.over || e.attempt != nil {
		return view{}, reservation.Reservation{}, reservation.ErrStale
	}
	return d.viewNow(by, e.r.ProjectID), e.r, nil
}

// enterChanges begins changes of one project's reservations that were decided on v, all or none.
// Until they are stored, the calendar contains, at each instant, the larger of the old and the new
// claims of all of them together.
func (d *Service) enterChanges(v *view, attempts ...*attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var moved []*attempt
	var before, after []calendar.Claim
	for _, a := range attempts {
		if a.entry.over || a.entry.attempt != nil || a.entry.r.Version != a.before.Version {
			return errOvertaken
		}
		if !a.next.Status.Live() || holdsSame(&a.before, &a.next) {
			continue
		}
		if d.outdated(v, a.next.ProjectID) || !d.unchanged(v, hostsAnew(a.before, a.next)) {
			return errOvertaken
		}
		moved = append(moved, a)
		before = append(before, d.calendarClaims(&a.before, a.before.Claims)...)
		after = append(after, d.calendarClaims(&a.next, a.next.Claims)...)
	}
	if len(moved) > 0 {
		held := planning.Envelope(before, after)
		d.release(before)
		// A host may have become smaller since it was promised; Restore holds the claims anyway.
		if err := d.calendar.Restore(held...); err != nil {
			d.restore(before)
			return fmt.Errorf("hold the hosts of the change: %w", err)
		}
		for _, a := range moved {
			a.held = []calendar.Claim{}
		}
		moved[0].held = held
	}
	d.begin(attempts...)
	return nil
}

// unchanged reports whether the calendar has the same claims on the hosts as v. The caller holds
// mu.
func (d *Service) unchanged(v *view, hosts []string) bool {
	for _, host := range hosts {
		if number, _ := d.hosts.Number(host); !d.calendar.Unchanged(v.state.calendar, number) {
			return false
		}
	}
	return true
}

// find returns the entry of a live reservation that the caller may change. It reads a
// reservation that another replica has just booked.
func (d *Service) find(ctx context.Context, by Caller, id string) (*entry, error) {
	for read := false; ; read = true {
		if e, ok := d.entry(id); ok && d.mayChange(by, e) {
			return e, nil
		}
		r, err := d.options.Reader.Get(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case !by.may(&r):
			return nil, NotFound(id)
		case read || !r.Status.Live():
			return nil, fault.New(fault.Conflict, "the reservation is %s", r.Status)
		}
		if err := d.poll(ctx, Recall{IDs: []string{id}}); err != nil {
			return nil, err
		}
	}
}

func (d *Service) mayChange(by Caller, e *entry) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return !e.over && by.may(&e.r)
}

// may reports whether the caller may see and change the reservation.
func (c Caller) may(r *reservation.Reservation) bool { return c.Admin || r.BelongsTo(c.ProjectID) }

// NotFound returns the error for a reservation that does not exist or that the caller may not see.
func NotFound(id string) error { return fault.New(fault.NotFound, "there is no reservation %s", id) }
