// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Changes are offers and changes of reservations. Changes of a reservation that belongs to a lease are those of
// the lease.
type Changes struct {
	*decider
	leases *Leases
}

// OfferChange returns what Change would do now, without doing it.
func (d *Changes) OfferChange(ctx context.Context, by Caller, id string, c planning.Change) (planning.Plan, error) {
	if err := d.checkLease(ctx, by, id, c); err != nil {
		return planning.Plan{}, err
	}
	var again retry
	for {
		again.decide(d.decider)
		var plan planning.Plan
		_, err := d.amend(ctx, by, id, func(v planning.View, r reservation.Reservation) (_ amended, err error) {
			plan, _, err = planChange(v, r, c)
			return amended{next: r}, err
		})
		if !errors.Is(err, reservation.ErrStale) {
			return plan, d.explainExtension(ctx, by, id, c, err)
		}
		if err := again.after(ctx, d.decider, err, Recall{IDs: []string{id}}); err != nil {
			return planning.Plan{}, err
		}
	}
}

// Change changes a reservation and stores it. A refused or failed change leaves the
// reservation as it was. If it is the only one of a lease, its times, its warning and what happens at its end are those of
// the lease; if there are others, a change of them is a Conflict fault.
func (d *Changes) Change(ctx context.Context, by Caller, id string, c planning.Change) (reservation.Reservation, error) {
	r, err := permitting(ctx, d.decider, func(p *permit) (reservation.Reservation, error) { return d.changeWith(ctx, by, id, c, p) })
	return r, d.explainExtension(ctx, by, id, c, err)
}

// changeWith is Change with a permit, which is about the whole lease.
func (d *Changes) changeWith(ctx context.Context, by Caller, id string, c planning.Change, p *permit) (reservation.Reservation, error) {
	if c.Shared() || p != nil {
		lease, err := d.leaseOf(ctx, by, id)
		if err != nil {
			return reservation.Reservation{}, err
		}
		if lease != "" {
			return d.changeMember(ctx, by, lease, id, c, p)
		}
	}
	return d.modify(ctx, by, id, "store the changed reservation", func(v planning.View, r reservation.Reservation) (amended, error) {
		plan, moved, err := planChange(v, r, c)
		if err != nil {
			return amended{}, err
		}
		next := planning.ChangedAlone(r, plan, v.Now)
		return amended{next, causeOf(by, r, next), moved}, p.checkOwn(r, next)
	})
}

// planChange decides on a change of r. moved are others that have other hosts so that r can end later, after their moves.
func planChange(v planning.View, r reservation.Reservation, c planning.Change) (plan planning.Plan, moved []reservation.Reservation, err error) {
	v = v.Without(&r)
	plan, err = planning.PlanChange(v, r, c)
	if refusal, refused := errors.AsType[*reservation.Refusal](err); refused && refusal.Constraint == reservation.HostsFree {
		if later, moved, ok := planning.PlanExtension(v, r, c); ok {
			return later, moved, nil
		}
	}
	return plan, nil, err
}

// Cancel cancels a reservation. The claims that it has used stay in its record; its other
// claims are released. If it is the only one of a lease, the lease is canceled; if there are others,
// Cancel returns a Conflict fault.
func (d *Changes) Cancel(ctx context.Context, by Caller, id string) (reservation.Reservation, error) {
	lease, err := d.leaseOf(ctx, by, id)
	if err != nil {
		return reservation.Reservation{}, err
	}
	if lease != "" {
		return d.cancelMember(ctx, by, lease, id)
	}
	return d.modify(ctx, by, id, "store the canceled reservation", func(v planning.View, r reservation.Reservation) (amended, error) {
		next, err := planning.Canceled(r, v.Now)
		return amended{next: next, cause: causeOf(by, r, next)}, err
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

// amendment decides on a change of a reservation, which the view contains.
type amendment func(v planning.View, r reservation.Reservation) (amended, error)

// amended is a reservation after a change, or unchanged if there is nothing to change.
type amended struct {
	next  reservation.Reservation
	cause reservation.Cause
	moved []reservation.Reservation // others that make room for it, after their moves
}

// modify decides on a change of a reservation and stores it. It decides again if the records
// have changed.
func (d *Changes) modify(ctx context.Context, by Caller, id, doing string, amend amendment) (reservation.Reservation, error) {
	var again retry
	for {
		again.decide(d.decider)
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
			q = d.concerning(a.together)
		}
		if err := again.after(ctx, d.decider, err, q); err != nil {
			return reservation.Reservation{}, err
		}
	}
}

func (d *Changes) modifyOnce(ctx context.Context, by Caller, id, doing string, amend amendment) (*attempt, error) {
	a, err := d.amend(ctx, by, id, amend)
	if err != nil || a.next.Version == a.before.Version {
		return a, err
	}
	defer leave(a.together)
	if err := d.commitTogether(ctx, whole{}, a.together...); err != nil {
		return a, fmt.Errorf("%s: %w", doing, err)
	}
	return a, nil
}

// amend decides on a change and begins it unless nothing changes. If it begins the change, the
// entry is locked when amend returns.
func (d *Changes) amend(ctx context.Context, by Caller, id string, amend amendment) (a *attempt, err error) {
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
	return decide(ctx, d.decider, by.ProjectID, (*turns.Gate).EnterAhead, func() (*attempt, error) { return d.amendNow(by, e, amend) })
}

func (d *Changes) amendNow(by Caller, e *entry, amend amendment) (*attempt, error) {
	v, r, err := d.viewOf(by, e)
	if err != nil {
		return nil, err
	}
	if err := by.expects("reservation", r.VersionText()); err != nil {
		return nil, err
	}
	d.letMove(&v, v.state.live.byStart)
	change, err := amend(v.View, r)
	if err != nil {
		return nil, err
	}
	a := &attempt{entry: e, before: r, next: change.next, cause: change.cause}
	if a.next.Version == r.Version {
		return a, nil
	}
	moves, err := d.movesOf(by.RequestID, change.moved)
	if err != nil {
		return nil, err
	}
	if _, _, err := d.enterAndBook(&v, by.RequestID, append([]*attempt{a}, moves...)); err != nil {
		leave(moves)
		return nil, err
	}
	return a, nil
}

// viewOf returns the view for a decision about a live reservation, and the reservation, whose entry
// the caller has locked. It fails with ErrStale if a change of it is in doubt or if it is over.
func (d *Changes) viewOf(by Caller, e *entry) (view, reservation.Reservation, error) {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	if e.over || e.attempt != nil {
		return view{}, reservation.Reservation{}, reservation.ErrStale
	}
	return d.viewNow(by, e.r.ProjectID), e.r, nil
}

// find returns the entry of a live reservation that the caller may change. It reads a
// reservation that another replica has just booked.
func (d *Changes) find(ctx context.Context, by Caller, id string) (*entry, error) {
	for read := false; ; read = true {
		if e, ok := d.entry(id); ok && d.mayChange(by, e) {
			return e, nil
		}
		r, err := d.options.Reader.Get(ctx, id)
		changed := by.expects("reservation", r.VersionText())
		switch {
		case err != nil:
			return nil, err
		case !by.may(&r):
			return nil, NotFound(id)
		case changed != nil:
			return nil, changed
		case planning.RefuseExpired(&r) != nil:
			return nil, planning.RefuseExpired(&r)
		case read || !r.Status.Live():
			return nil, fault.New(fault.Conflict, "the reservation is %s", r.Status)
		}
		if err := d.poll(ctx, Recall{IDs: []string{id}}); err != nil {
			return nil, err
		}
	}
}

func (d *Changes) mayChange(by Caller, e *entry) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return !e.over && by.may(&e.r)
}

// NotFound returns the error for a reservation that does not exist or that the caller may not see.
func NotFound(id string) error { return fault.New(fault.NotFound, "there is no reservation %s", id) }
