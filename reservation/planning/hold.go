// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// This file has what a hold is: a pending reservation that ends at a time unless its owner confirms it. A hold ends by the event
// reservation.ExpireEvent of its log, and a confirmation takes that event out.

// shortestHold is the shortest hold, in seconds.
const shortestHold = 10

// HoldExpired is what the log and the audit trail have about a reservation whose hold has expired.
const HoldExpired = "the hold expired before it was confirmed"

// startAfterHold moves the start of the window to the end of the hold. It fails with an Invalid fault if the request cannot be
// held for so long.
func (a *request) startAfterHold(v View) error {
	longest := v.Limits.Hold
	switch {
	case a.hold == 0:
		return nil
	case a.Maintenance:
		return fault.Field("hold", "is not allowed for maintenance; plan it, and cancel it if it is not needed")
	case longest == 0:
		return fault.Field("hold", "is not offered on this cloud; book the reservation, and cancel it if you do not need it")
	case a.hold < shortestHold || a.hold > longest:
		return fault.Field("hold", "must be from %v to %v, not %v", period(shortestHold), period(longest), period(a.hold))
	}
	end := v.Now.Add(a.hold)
	if latest := a.window.End.Add(-a.duration); latest < end {
		return fault.Field("hold", "would end at %v, after the latest start that was asked for, %v; ask for a later start or for a shorter hold", end, latest)
	}
	a.window.Start = max(a.window.Start, end)
	return nil
}

// holdOf returns the span in which r counts as a hold; empty if it is not held.
func holdOf(r *reservation.Reservation) span.Span {
	return span.Span{Start: r.Created, End: r.HeldUntil()}
}

// tooManyHolds returns the constraint and a sentence if the project may not hold one more for that many seconds from now on; "" if
// it may.
func (l Limits) tooManyHolds(now span.Instant, held Held, seconds int64) (reservation.Constraint, string) {
	if l.Holds == 0 || held.Holds.Most(span.New(now, seconds)) < l.Holds {
		return "", ""
	}
	free := held.Holds.AtMost(l.Holds-1, span.Span{Start: now, End: span.Forever})
	return reservation.MaxHolds, fmt.Sprintf("the project has as many holds as it may, %d; confirm or cancel one, or wait until the next one expires at %v",
		l.Holds, free[0].Start)
}

// KeepsHolds reports whether a project that holds held, the new reservation r included, keeps the limit on holds while r is held,
// and the limit on waiting reservations.
func (l Limits) KeepsHolds(held Held, r *reservation.Reservation) bool {
	return (l.Holds == 0 || held.Holds.Most(holdOf(r)) <= l.Holds) && (r.Status != reservation.Waiting || held.Waiting <= l.Waiting)
}

// checkHeld fails if r is held and the change does not confirm it, and if it would lengthen a hold.
func checkHeld(now span.Instant, r *reservation.Reservation, c Change) error {
	until := r.HeldUntil()
	switch {
	case c.Hold != nil && *c.Hold != 0:
		return fault.Field("hold", "can only become 0, which confirms the reservation; a hold cannot begin later or last longer")
	case until == 0:
		return nil
	case until <= now:
		return expiredAt(until)
	case c.Hold == nil:
		return fault.New(fault.Conflict, "the reservation is held until %v; confirm it before or with the change, or cancel it and hold another one", until)
	}
	return nil
}

// RefuseExpired returns the error for a change of a reservation whose hold has expired; nil if r is none.
func RefuseExpired(r *reservation.Reservation) error {
	e, ok := r.LastEvent(reservation.ExpireEvent)
	switch {
	case !ok || e.State != reservation.EventDone:
		return nil
	case e.Detail == WaitExpired:
		return fault.New(fault.Conflict, "the reservation waited until %v, and there was no room; ask for another time", e.Time)
	}
	return expiredAt(e.Time)
}

func expiredAt(at span.Instant) error {
	return fault.New(fault.Conflict, "the hold expired at %v, before it was confirmed; book the reservation again", at)
}

// Expired returns r when its hold or its wait is over: it is canceled and claims nothing. It fails with a Conflict fault if r is
// neither held nor waiting, or if that still lasts at now.
func Expired(r reservation.Reservation, now span.Instant) (reservation.Reservation, error) {
	until, why := r.HeldUntil(), HoldExpired
	if r.Status == reservation.Waiting {
		until, why = r.WaitsUntil(), WaitExpired
	}
	if until == 0 || now < until {
		return r, fault.New(fault.Conflict, "the reservation neither is held nor waits until %v", now)
	}
	status, err := lifecycle.Begin(r.Status, reservation.ExpireEvent)
	if err != nil {
		return r, err
	}
	expiry := Happened(reservation.ExpireEvent, until, why)
	expiry.Done = now
	return Closed(r, status, expiry, now), nil
}

// confirmed returns a log without the end of a hold.
func confirmed(log []reservation.Event) []reservation.Event {
	return slices.DeleteFunc(slices.Clone(log), func(e reservation.Event) bool {
		return e.Type == reservation.ExpireEvent && e.State == reservation.EventDue
	})
}

// heldText returns the end of a hold for the text of a change.
func heldText(until span.Instant) string {
	if until == 0 {
		return "none"
	}
	return until.String()
}
