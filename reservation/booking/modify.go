package booking

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// OfferChange gives what Change would do now, without doing it.
func (d *Desk) OfferChange(ctx context.Context, by Caller, id string, c Change) (Plan, error) {
	e, err := d.lock(ctx, by, id)
	if err != nil {
		return Plan{}, err
	}
	defer e.changing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.planChange(by, e, c)
}

// Change changes a reservation and stores it. A refused or failed change leaves
// everything as it was.
func (d *Desk) Change(ctx context.Context, by Caller, id string, c Change) (reservation.Reservation, error) {
	e, err := d.lock(ctx, by, id)
	if err != nil {
		return reservation.Reservation{}, err
	}
	defer e.changing.Unlock()
	next, both, err := d.holdChange(by, e, c)
	if err != nil {
		return reservation.Reservation{}, err
	}
	if next.Version == e.r.Version {
		return next, nil // nothing is to change
	}
	if err := d.options.Records.Update(ctx, next); err != nil {
		d.settleChange(e, e.r, both)
		return reservation.Reservation{}, fmt.Errorf("store the changed reservation: %w", err)
	}
	d.settleChange(e, next, both)
	d.wake()
	return next, nil
}

// holdChange plans the change and holds, at each instant, the larger of what the
// reservation has and what it shall have.
func (d *Desk) holdChange(by Caller, e *entry, c Change) (reservation.Reservation, []calendar.Claim, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	plan, err := d.planChange(by, e, c)
	if err != nil {
		return reservation.Reservation{}, nil, err
	}
	next := changed(e.r, plan, d.options.Now())
	if difference(e.r, next) == "" {
		return e.r, nil, nil
	}
	both := append(slices.Clone(e.r.Claims), next.Claims...)
	held := d.calendarClaims(&e.r, envelope(both, len(e.r.Claims)))
	d.release(d.calendarClaims(&e.r, e.r.Claims))
	// What was promised stays held where a host has become smaller since.
	if err := d.calendar.Restore(held...); err != nil {
		d.retake(&e.r)
		return reservation.Reservation{}, nil, fmt.Errorf("hold the hosts of the change: %w", err)
	}
	return next, held, nil
}

// settleChange puts r in the place of what was held for the change.
func (d *Desk) settleChange(e *entry, r reservation.Reservation, held []calendar.Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(held)
	d.retake(&r)
	d.replace(e, r)
}

// retake enters the claims of a reservation that held them a moment ago.
func (d *Desk) retake(r *reservation.Reservation) {
	if err := d.calendar.Restore(d.calendarClaims(r, r.Claims)...); err != nil {
		panic(fmt.Sprintf("booking: the calendar gave a held claim away: %v", err))
	}
}

// planChange plans with the reservation's own claims out of the way; mu is held.
func (d *Desk) planChange(by Caller, e *entry, c Change) (Plan, error) {
	own := d.calendarClaims(&e.r, e.r.Claims)
	d.release(own)
	d.count(&e.r, -1)
	plan, err := PlanChange(d.view(by, e.r.ProjectID), e.r, c)
	d.count(&e.r, 1)
	d.retake(&e.r)
	return plan, err
}

// changed gives r as the plan has it.
func changed(r reservation.Reservation, plan Plan, now span.Instant) reservation.Reservation {
	before := r
	r.Terms, r.Span, r.Claims = plan.Terms, plan.Span, plan.Claims
	r.Updated, r.Version = now, r.Version+1
	r.Events = append(slices.Clone(r.Events), happened(reservation.ChangedEvent, now, difference(before, r)))
	r.Events = lifecycle.Schedule(&r)
	return r
}

// difference says in words what a change changed.
func difference(before, after reservation.Reservation) string {
	var parts []string
	add := func(name string, from, to any) {
		if from != to {
			parts = append(parts, fmt.Sprintf("%s from %v to %v", name, from, to))
		}
	}
	add("name", strconv.Quote(before.Name), strconv.Quote(after.Name))
	add("quantity", before.Quantity, after.Quantity)
	add("start", before.Span.Start, after.Span.Start)
	add("end", before.Span.End, after.Span.End)
	return strings.Join(parts, ", ")
}

// Cancel gives a reservation up. What it has used stays in its history; the rest
// is free for others.
func (d *Desk) Cancel(ctx context.Context, by Caller, id string) (reservation.Reservation, error) {
	e, err := d.lock(ctx, by, id)
	if err != nil {
		return reservation.Reservation{}, err
	}
	defer e.changing.Unlock()
	next, err := cancelled(e.r, d.options.Now())
	if err != nil {
		return reservation.Reservation{}, err
	}
	if err := d.options.Records.Update(ctx, next); err != nil {
		return reservation.Reservation{}, fmt.Errorf("store the cancelled reservation: %w", err)
	}
	d.drop(e, e.r.Claims)
	return next, nil
}

func cancelled(r reservation.Reservation, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Cancel)
	if err != nil {
		return r, err
	}
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool { return e.State == reservation.Due })
	r.Events = append(r.Events, happened(reservation.CancelledEvent, now, ""))
	var used []reservation.Claim
	for _, c := range r.Claims {
		if c.Span.End = min(c.Span.End, now); !c.Span.Empty() {
			used = append(used, c)
		}
	}
	r.Claims = used
	return r, nil
}

// lock gives the entry of a live reservation that the caller may change, locked.
func (d *Desk) lock(ctx context.Context, by Caller, id string) (*entry, error) {
	e, ok := d.entry(id)
	if ok {
		e.changing.Lock()
		if !e.over && by.may(&e.r) {
			return e, nil
		}
		e.changing.Unlock()
	}
	r, err := d.options.Reader.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !by.may(&r) {
		return nil, NotFound(id)
	}
	return nil, fault.New(fault.Conflict, "the reservation is %s", r.Status)
}

// may says whether the caller may see and change the reservation.
func (c Caller) may(r *reservation.Reservation) bool { return c.Admin || c.ProjectID == r.ProjectID }

// NotFound is the answer for a reservation that is not there, or not the caller's.
func NotFound(id string) error { return fault.New(fault.NotFound, "there is no reservation %s", id) }
