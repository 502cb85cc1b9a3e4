package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// OfferChange gives what Change would do now, without doing it.
func (d *Desk) OfferChange(ctx context.Context, by Caller, id string, c Change) (Plan, error) {
	var again retry
	for {
		again.decide(d)
		plan, err := d.offerChange(ctx, by, id, c)
		if !errors.Is(err, reservation.ErrStale) {
			return plan, err
		}
		if err := again.after(ctx, d, err, Recall{IDs: []string{id}}); err != nil {
			return Plan{}, err
		}
	}
}

func (d *Desk) offerChange(ctx context.Context, by Caller, id string, c Change) (Plan, error) {
	e, err := d.lock(ctx, by, id)
	if err != nil {
		return Plan{}, err
	}
	defer e.changing.leave()
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.over || e.attempt != nil {
		return Plan{}, reservation.ErrStale
	}
	return d.planChange(by, e, c)
}

// Change changes a reservation and stores it. A refused or failed change leaves
// everything as it was.
func (d *Desk) Change(ctx context.Context, by Caller, id string, c Change) (reservation.Reservation, error) {
	return d.modify(ctx, by, id, "store the changed reservation", func(e *entry) (*attempt, error) {
		return d.holdChange(by, e, c)
	})
}

// Cancel gives a reservation up. What it has used stays in its history; the rest
// is free for others.
func (d *Desk) Cancel(ctx context.Context, by Caller, id string) (reservation.Reservation, error) {
	return d.modify(ctx, by, id, "store the cancelled reservation", func(e *entry) (*attempt, error) {
		next, err := cancelled(e.r, d.options.Now())
		if err != nil {
			return nil, err
		}
		cause := reservation.Cause{Action: reservation.Cancel, UserID: by.UserID, RequestID: by.RequestID}
		return &attempt{entry: e, before: e.r, next: next, cause: cause}, nil
	})
}

// modify lets hold begin a change of a reservation, with mu held, and stores it;
// again where the records have moved on.
func (d *Desk) modify(
	ctx context.Context, by Caller, id, doing string, hold func(e *entry) (*attempt, error),
) (reservation.Reservation, error) {
	var again retry
	for {
		again.decide(d)
		a, err := d.modifyOnce(ctx, by, id, doing, hold)
		q := Recall{IDs: []string{id}}
		switch {
		case err == nil && (again.fresh || a.next.Version != a.before.Version):
			return a.next, nil
		case err == nil:
			// Nothing was stored that would have failed on what memory does not know yet.
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

func (d *Desk) modifyOnce(
	ctx context.Context, by Caller, id, doing string, hold func(e *entry) (*attempt, error),
) (*attempt, error) {
	e, err := d.lock(ctx, by, id)
	if err != nil {
		return nil, err
	}
	defer e.changing.leave()
	a, err := d.changeOf(e, hold)
	if err != nil || a.next.Version == a.before.Version {
		return a, err
	}
	if err := d.commit(ctx, a); err != nil {
		return a, fmt.Errorf("%s: %w", doing, err)
	}
	return a, nil
}

// changeOf begins a change with mu held. A change that changes nothing is not begun.
func (d *Desk) changeOf(e *entry, hold func(e *entry) (*attempt, error)) (*attempt, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.over || e.attempt != nil { // which is in doubt: the entry is locked
		return nil, reservation.ErrStale
	}
	a, err := hold(e)
	if err != nil || a.next.Version == a.before.Version {
		return a, err
	}
	return d.begin(a), nil
}

// holdChange plans the change and holds what the reservation has and what it shall
// have; mu is held.
func (d *Desk) holdChange(by Caller, e *entry, c Change) (*attempt, error) {
	plan, err := d.planChange(by, e, c)
	if err != nil {
		return nil, err
	}
	next := changed(e.r, plan, d.options.Now())
	difference := difference(e.r, next)
	if difference == "" {
		return &attempt{entry: e, before: e.r, next: e.r}, nil
	}
	return d.holdBoth(e, next, reservation.Cause{
		Action: reservation.Modify, UserID: by.UserID, RequestID: by.RequestID, Detail: difference,
	})
}

// holdBoth holds, at each instant, the larger of what the reservation has and what
// next has; mu is held.
func (d *Desk) holdBoth(e *entry, next reservation.Reservation, cause reservation.Cause) (*attempt, error) {
	both := append(slices.Clone(e.r.Claims), next.Claims...)
	held := d.calendarClaims(&e.r, envelope(both, len(e.r.Claims)))
	d.release(d.calendarClaims(&e.r, e.r.Claims))
	// What was promised stays held where a host has become smaller since.
	if err := d.calendar.Restore(held...); err != nil {
		d.retake(&e.r)
		return nil, fmt.Errorf("hold the hosts of the change: %w", err)
	}
	return &attempt{entry: e, before: e.r, next: next, held: held, cause: cause}, nil
}

// planChange plans with the reservation's own claims out of the way; mu is held.
func (d *Desk) planChange(by Caller, e *entry, c Change) (Plan, error) {
	own := d.calendarClaims(&e.r, e.r.Claims)
	d.release(own)
	d.count(&e.r, -1)
	v := d.view(by, e.r.ProjectID)
	v.Images = d.images(e.r.ID)
	plan, err := PlanChange(v, e.r, c)
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

// changeable are what the owner has asked for, by the names that the API has for it. A
// change that shows in none of them is no change, and is not stored.
var changeable = []struct {
	name string
	of   func(r *reservation.Reservation) string
}{
	{"name", func(r *reservation.Reservation) string { return strconv.Quote(r.Name) }},
	{"kind", func(r *reservation.Reservation) string { return string(r.Kind) }},
	{"quantity", func(r *reservation.Reservation) string { return strconv.Itoa(r.Quantity) }},
	{"host_properties", func(r *reservation.Reservation) string { return strconv.Quote(r.HostProperties) }},
	{"policy", func(r *reservation.Reservation) string { return string(r.Policy) }},
	{"resources", func(r *reservation.Reservation) string { return fmt.Sprintf("%+v", r.Resources) }},
	{"affinity", func(r *reservation.Reservation) string { return string(r.Affinity) }},
	{"image", func(r *reservation.Reservation) string { return strconv.Quote(r.Image) }},
	{"on_end", func(r *reservation.Reservation) string { return string(r.OnEnd) }},
	{"before_end", func(r *reservation.Reservation) string { return strconv.FormatInt(r.BeforeEnd, 10) + "s" }},
	{"start", func(r *reservation.Reservation) string { return r.Span.Start.String() }},
	{"end", func(r *reservation.Reservation) string { return r.Span.End.String() }},
}

// difference says in words what a change changed; empty where it changed nothing. Each
// value has at most 300 characters.
func difference(before, after reservation.Reservation) string {
	var parts []string
	for _, field := range changeable {
		if from, to := field.of(&before), field.of(&after); from != to {
			parts = append(parts, fmt.Sprintf("%s from %.300s to %.300s", field.name, from, to))
		}
	}
	return strings.Join(parts, ", ")
}

func cancelled(r reservation.Reservation, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Cancel)
	if err != nil {
		return r, err
	}
	return closed(r, status, happened(reservation.CancelledEvent, now, ""), now), nil
}

// closed gives r over before it has come to its end: what it has used stays, and what
// lies ahead has gone.
func closed(r reservation.Reservation, status reservation.Status, last reservation.Event, now span.Instant) reservation.Reservation {
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool { return e.State != reservation.Done })
	r.Events = append(r.Events, last)
	var used []reservation.Claim
	for _, c := range r.Claims {
		if c.Span.End = min(c.Span.End, now); !c.Span.Empty() {
			used = append(used, c)
		}
	}
	r.Claims = used
	return r
}

// lock gives the entry of a live reservation that the caller may change, locked.
// One that another replica has booked a moment ago is read first.
func (d *Desk) lock(ctx context.Context, by Caller, id string) (*entry, error) {
	for read := false; ; read = true {
		if e, ok := d.entry(id); ok {
			if err := e.changing.take(ctx); err != nil {
				return nil, err
			}
			if d.mayChange(by, e) {
				return e, nil
			}
			e.changing.leave()
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

func (d *Desk) mayChange(by Caller, e *entry) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return !e.over && by.may(&e.r)
}

// may says whether the caller may see and change the reservation.
func (c Caller) may(r *reservation.Reservation) bool { return c.Admin || c.ProjectID == r.ProjectID }

// NotFound is the answer for a reservation that is not there, or not the caller's.
func NotFound(id string) error { return fault.New(fault.NotFound, "there is no reservation %s", id) }
