// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// KeyUse is the idempotency key of a request, and a hash of the request's body.
type KeyUse struct {
	Key, BodyHash string
}

// Book makes a reservation and stores it. If the project has used the key with the same body
// before, Book returns the reservation made then; with another body it fails with an
// Unprocessable fault.
func (d *Service) Book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (reservation.Reservation, error) {
	if use != nil {
		unlock, err := d.keys.lock(ctx, [2]string{by.ProjectID, use.Key})
		if err != nil {
			return reservation.Reservation{}, err
		}
		defer unlock()
	}
	if made, ok, err := d.madeBefore(ctx, by, use); ok || err != nil {
		return made, err
	}
	booked, err := permitting(ctx, d, func(p *permit) (reservation.Reservation, error) { return d.book(ctx, by, req, use, p) })
	if errors.Is(err, reservation.ErrKeyUsed) {
		return d.madeMeanwhile(ctx, by, use)
	}
	if err != nil {
		// The obstacle may be the reservation that the same request has made through another replica.
		if made, ok, keyErr := d.madeBefore(ctx, by, use); ok && keyErr == nil {
			return made, nil
		}
	}
	return booked, err
}

// book books a request with a permit.
func (d *Service) book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) (reservation.Reservation, error) {
	var again retry
	for {
		again.decide(d)
		a, err := d.bookOnce(ctx, by, req, use, p)
		if err == nil {
			return a.next, nil
		}
		var q Recall
		if a != nil {
			q = Recall{Hosts: d.versioned(&a.next), Project: by.ProjectID}
		}
		if err := again.after(ctx, d, err, q); err != nil {
			return reservation.Reservation{}, err
		}
	}
}

func (d *Service) bookOnce(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) (*attempt, error) {
	a, err := decide(ctx, d, by.ProjectID, (*turns.Gate).Enter, func() (*attempt, error) { return d.reserve(ctx, by, req, use, p) })
	if err != nil {
		return nil, err
	}
	defer a.entry.changing.Leave(byRequest)
	if err := d.commitNew(ctx, a); err != nil {
		return a, fmt.Errorf("store the reservation: %w", err)
	}
	return a, nil
}

// decide runs try, which makes a decision and adds its claims to memory. It repeats this as long as
// the decision is overtaken by other replicas' commits, by a change of the inventory, or by the end
// of a reservation.
func decide[T any](
	ctx context.Context, d *Service, project string, enter func(*turns.Gate, context.Context, string) error, try func() (T, error),
) (decided T, err error) {
	ctx, end := tracing.Step(ctx, "decide")
	defer func() { endDecision(ctx, end, err) }()
	if err := enter(d.changes, ctx, project); err != nil {
		return decided, err
	}
	defer d.changes.Leave(project)
	once := func() (decided T, err error) {
		if err := enter(d.deciding, ctx, project); err != nil {
			return decided, err
		}
		defer d.deciding.Leave(project)
		return try()
	}
	for range tries {
		if decided, err = once(); !errors.Is(err, errOvertaken) {
			return decided, err
		}
	}
	return decided, inDemand(errOvertaken)
}

// endDecision ends the step of a decision. A refusal is a result.
func endDecision(ctx context.Context, end tracing.End, err error) {
	if refused, ok := errors.AsType[*reservation.Refusal](err); ok {
		tracing.Note(ctx, slog.String("refused_by", string(refused.Constraint)))
		err = nil
	}
	end(err)
}

// madeBefore returns the reservation that was made with the key; ok is false if the key was not
// used before.
func (d *Service) madeBefore(ctx context.Context, by Caller, use *KeyUse) (r reservation.Reservation, ok bool, err error) {
	if use == nil {
		return r, false, nil
	}
	before, ok, err := d.options.Keys.Key(ctx, by.ProjectID, use.Key)
	if err != nil || !ok {
		return r, false, err
	}
	if before.BodyHash != use.BodyHash {
		return r, false, fault.New(fault.Unprocessable, "the Idempotency-Key %q was used for another request; use a new key", use.Key)
	}
	r, err = d.options.Reader.Get(ctx, before.ReservationID)
	if fault.Is(err, fault.NotFound) || err == nil && r.Status == reservation.Canceled {
		err = fault.New(fault.Conflict, "this request has made reservation %s before, which was canceled since then; use a new Idempotency-Key for another one",
			before.ReservationID)
	}
	return r, err == nil, err
}

// madeMeanwhile returns the reservation that the same request has just made through another
// replica.
func (d *Service) madeMeanwhile(ctx context.Context, by Caller, use *KeyUse) (reservation.Reservation, error) {
	made, ok, err := d.madeBefore(ctx, by, use)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "the Idempotency-Key %q expired at this moment; send the request again", use.Key)
	}
	return made, err
}

// reserve plans the request and adds its claims to the calendar. The entry is locked until it
// is stored.
func (d *Service) reserve(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) (*attempt, error) {
	v := d.view(by, by.ProjectID)
	plan, err := planning.NewPlan(v.View, req)
	if err != nil {
		return nil, err
	}
	l := reservation.OwnLease(d.newReservation(by, plan, v.Now))
	p.name(&l)
	if err := p.check(nil, &l); err != nil {
		return nil, err
	}
	r := l.Reservations[0]
	a, err := newAttempt(ctx, &v, r, by)
	if err != nil {
		return nil, err
	}
	a.key = use.key(&r)
	return a, d.enter(&v, a)
}

// newReservation returns a new reservation by a plan.
func (d *Service) newReservation(by Caller, p planning.Plan, now span.Instant) reservation.Reservation {
	r := reservation.Reservation{
		ID: d.options.NewID(), ProjectID: by.ProjectID, UserID: by.UserID,
		Terms: p.Terms, Status: reservation.Pending, Span: p.Span, Claims: p.Claims, Addresses: p.Addresses,
		DelayedByBoot: p.DelayedByBoot, Created: now, Updated: now, Version: 1,
	}
	r.Events = append([]reservation.Event{planning.Happened(reservation.CreatedEvent, now, "")}, lifecycle.Schedule(&r)...)
	return r
}

// newAttempt returns the attempt to store a new reservation, whose entry it locks.
func newAttempt(ctx context.Context, v *view, r reservation.Reservation, by Caller) (*attempt, error) {
	changing := turns.New(1, 0)
	if err := changing.Enter(ctx, byRequest); err != nil {
		return nil, err
	}
	return &attempt{
		entry: &entry{r: r, changing: changing}, next: r, held: v.Hosts.Claims(&r, r.Claims),
		cause: reservation.Cause{Action: reservation.ActionCreate, UserID: by.UserID, RequestID: by.RequestID},
	}, nil
}

// enter adds the claims of new reservations of one project to the calendar, all or none. v is the
// view on which they were decided.
func (d *Service) enter(v *view, attempts ...*attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	var claims []calendar.Claim
	for _, a := range attempts {
		claims = append(claims, a.held...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.outdated(v, attempts[0].next.ProjectID) || d.calendar.Add(claims...) != nil {
		return errOvertaken
	}
	for _, a := range attempts {
		d.addLive(a.entry)
	}
	d.begin(attempts...)
	return nil
}

// key returns the record of the use of a key for r.
func (u *KeyUse) key(r *reservation.Reservation) *reservation.Key {
	if u == nil {
		return nil
	}
	return &reservation.Key{ProjectID: r.ProjectID, Key: u.Key, BodyHash: u.BodyHash, ReservationID: r.ID, Created: r.Created}
}
