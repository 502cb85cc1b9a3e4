// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/turns"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// KeyUse is the idempotency key of a request, and a hash of the request's body.
type KeyUse struct {
	Key, BodyHash string
}

// Bookings are offers and new reservations.
type Bookings struct {
	*decider
	keys locks[[2]string] // by project and key
}

// Book makes a reservation and stores it. If the project has used the key with the same body
// before, Book returns the reservation made then; with another body it fails with an
// Unprocessable fault. If there is no room and the request waits, the reservation does.
func (d *Bookings) Book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse) (reservation.Reservation, error) {
	if err := d.mayWait(req); err != nil {
		return reservation.Reservation{}, err
	}
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
	booked, err := permitting(ctx, d.decider, func(p *permit) (reservation.Reservation, error) { return d.book(ctx, by, req, use, p) })
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
func (d *Bookings) book(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) (reservation.Reservation, error) {
	var again retry
	for {
		again.decide(d.decider)
		attempts, err := d.bookOnce(ctx, by, req, use, p)
		if err == nil {
			return attempts[0].next, nil
		}
		if err := again.after(ctx, d.decider, err, d.concerning(attempts)); err != nil {
			return reservation.Reservation{}, err
		}
	}
}

// bookOnce returns the attempt to store the new reservation, and those of others that move so that it has room.
func (d *Bookings) bookOnce(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) ([]*attempt, error) {
	attempts, err := decide(ctx, d.decider, by.ProjectID, (*turns.Gate).Enter, func() ([]*attempt, error) { return d.reserve(ctx, by, req, use, p) })
	if err != nil {
		return nil, err
	}
	defer leave(attempts)
	if len(attempts) > 1 {
		err = d.commitTogether(ctx, whole{}, attempts...)
	} else {
		err = d.commitNew(ctx, attempts[0])
	}
	if err != nil {
		return attempts, fmt.Errorf("store the reservation: %w", err)
	}
	if a := attempts[0]; a.fallback.Reason != "" && d.options.FellBack != nil {
		d.options.FellBack(ctx, &a.next, a.fallback)
	}
	return attempts, nil
}

// madeBefore returns the reservation that was made with the key; ok is false if the key was not
// used before.
func (d *Bookings) madeBefore(ctx context.Context, by Caller, use *KeyUse) (r reservation.Reservation, ok bool, err error) {
	if use == nil {
		return r, false, nil
	}
	before, ok, err := d.options.Keys.Key(ctx, by.ProjectID, use.Key)
	if err != nil || !ok {
		return r, false, err
	}
	if before.BodyHash != use.BodyHash {
		return r, false, otherBody(use)
	}
	r, err = d.options.Reader.Get(ctx, before.ReservationID)
	if fault.Is(err, fault.NotFound) || err == nil && r.Status == reservation.Canceled {
		err = fault.New(fault.Conflict, "this request has made reservation %s before, which was canceled since then; use a new Idempotency-Key for another one",
			before.ReservationID)
	}
	return r, err == nil, err
}

// otherBody returns the error for a key that the project has used for another request.
func otherBody(use *KeyUse) error {
	return fault.New(fault.Unprocessable, "the Idempotency-Key %q was used for another request; use a new key", use.Key)
}

// madeMeanwhile returns the reservation that the same request has just made through another
// replica.
func (d *Bookings) madeMeanwhile(ctx context.Context, by Caller, use *KeyUse) (reservation.Reservation, error) {
	made, ok, err := d.madeBefore(ctx, by, use)
	if err == nil && !ok {
		err = fault.New(fault.Conflict, "the Idempotency-Key %q expired at this moment; send the request again", use.Key)
	}
	return made, err
}

// reserve plans the request and adds its claims to the calendar. The entry, and those of reservations that move, are
// locked until they are stored.
func (d *Bookings) reserve(ctx context.Context, by Caller, req reservation.Request, use *KeyUse, p *permit) ([]*attempt, error) {
	v := d.view(by, by.ProjectID)
	plan, moved, err := d.plan(&v, req)
	if refusal, refused := errors.AsType[*reservation.Refusal](err); refused {
		return d.wait(ctx, &v, by, req, use, refusal)
	}
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
	a.key, a.fallback = use.key(&r), plan.Fallback
	if len(moved) == 0 {
		return []*attempt{a}, d.enter(&v, a)
	}
	moves, err := d.movesOf(by.RequestID, moved)
	if err != nil {
		return nil, err
	}
	if err := d.enterMoves(&v, a, moves); err != nil {
		leave(moves)
		return nil, err
	}
	return append([]*attempt{a}, moves...), nil
}

// key returns the record of the use of a key for r.
func (u *KeyUse) key(r *reservation.Reservation) *reservation.Key {
	if u == nil {
		return nil
	}
	return &reservation.Key{ProjectID: r.ProjectID, Key: u.Key, BodyHash: u.BodyHash, ReservationID: r.ID, Created: r.Created}
}

// Offer returns what Book would do now, without doing it.
func (d *Bookings) Offer(ctx context.Context, by Caller, req reservation.Request) (planning.Plan, error) {
	if err := d.mayWait(req); err != nil {
		return planning.Plan{}, err
	}
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return planning.Plan{}, err
	}
	defer d.deciding.Leave(by.ProjectID)
	v := d.view(by, by.ProjectID)
	plan, _, err := d.plan(&v, req)
	if refusal, refused := errors.AsType[*reservation.Refusal](err); refused {
		return planning.NewWait(v.View, req, refusal)
	}
	return plan, err
}

// Availability returns at most limit windows in which there is room for the requested quantity and
// duration, and the number of hosts that match. It applies the limits as a booking does: the error
// is a *reservation.Refusal if they allow no start.
func (d *Bookings) Availability(ctx context.Context, by Caller, req reservation.Request, limit int) (windows []calendar.Window, matched int, err error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return nil, 0, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.Availability(d.view(by, by.ProjectID).View, req, limit)
}

// NextStart returns the first start after a window without room at which there is some; see planning.NextStart.
func (d *Bookings) NextStart(ctx context.Context, by Caller, req reservation.Request) (span.Instant, error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return 0, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.NextStart(d.view(by, by.ProjectID).View, req)
}

// Offers returns the offers for a wish, without booking any; see planning.Offers.
func (d *Bookings) Offers(ctx context.Context, by Caller, w planning.Wish) (offers []planning.Offer, complete bool, err error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return nil, false, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.Offers(d.view(by, by.ProjectID).View, w)
}
