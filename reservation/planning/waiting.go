// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// This file has what a waiting reservation is: one that there was no room for. It claims nothing until there is room within its window.
// It ends by the event reservation.ExpireEvent of its log.

// WaitExpired is what the log and the audit trail have about a reservation that has waited in vain.
const WaitExpired = "there was no room until the end of the wait"

// waitCanceled is what the log has about a reservation that was canceled before there was room.
const waitCanceled = "while it waited for room"

// NeverBooked reports whether a reservation waits, or waited until it was canceled.
func NeverBooked(r *reservation.Reservation) bool {
	if r.Status == reservation.Waiting {
		return true
	}
	return slices.ContainsFunc(r.Events, func(e reservation.Event) bool {
		return e.Type == reservation.ExpireEvent && e.Detail == WaitExpired || e.Type == reservation.CanceledEvent && e.Detail == waitCanceled
	})
}

// startingWhileItWaits returns the request without times that may wait with the window in which it starts.
func startingWhileItWaits(req reservation.Request) reservation.Request {
	if req.WaitUntil != 0 && req.WaitUntil <= lastInstant && req.Start == 0 && req.End == 0 && req.Duration > 0 && req.Duration <= longestDuration {
		req.End = min(req.WaitUntil.Add(req.Duration+max(req.Hold, 0)), lastInstant)
	}
	return req
}

// checkWait fails with an Invalid fault if the request cannot wait until an instant; 0 means that it does not wait.
func (a *request) checkWait(v View, until span.Instant) error {
	latest := a.window.End.Add(-a.duration - a.hold)
	switch {
	case until == 0:
		return nil
	case a.Maintenance:
		return fault.Field("wait_until", "is not allowed for maintenance; plan it for a time at which its hosts are free")
	case v.Limits.Waiting == 0:
		return fault.Field("wait_until", "is not offered on this cloud; ask for another time")
	case until > latest && a.hold > 0:
		return fault.Field("wait_until", "must not be after %v, when the hold must begin for the latest start that was asked for", latest)
	case until > latest:
		return fault.Field("wait_until", "must not be after %v, the latest start that was asked for", latest)
	}
	return nil
}

// waitable are the constraints that may be met later although the request stays the same.
var waitable = []reservation.Constraint{
	reservation.HostsFree, reservation.HostsTogether, reservation.MaxHosts, reservation.MaxHostHours, reservation.MaxStartAhead, reservation.MaxHolds,
	reservation.ImageTransfer, reservation.ImagePool,
}

// NewWait returns the plan of a waiting reservation for a request that was refused: it claims nothing. The error is the refusal if the request
// does not wait: it asks for no wait, it can never be met, or the project has as many waiting reservations as it may.
func NewWait(v View, req reservation.Request, refusal *reservation.Refusal) (Plan, error) {
	if req.WaitUntil == 0 || !slices.Contains(waitable, refusal.Constraint) {
		return Plan{}, refusal
	}
	a, err := parseRequest(req, v)
	if err != nil {
		return Plan{}, err
	}
	switch l := v.Limits; {
	case refusal.Constraint == reservation.MaxHosts && a.Quantity > l.Hosts, refusal.Constraint == reservation.MaxHostHours && int64(a.Quantity) > l.HostSeconds/a.duration:
		return Plan{}, refusal
	case v.Held.Waiting >= l.Waiting:
		full := *refusal
		full.Message += fmt.Sprintf("; the project has as many waiting reservations as it may, %d", l.Waiting)
		return Plan{}, &full
	}
	window := span.Span{Start: max(req.Start, v.Now), End: a.window.End}
	return Plan{Terms: a.Terms, Span: span.New(window.Start, a.duration), Window: window, WaitsUntil: req.WaitUntil, Hold: a.hold, Matched: refusal.Matched}, nil
}

// Freed is what has become free.
type Freed struct {
	// All is true if that is unknown, so that all that waits is looked at.
	All bool
	// Within is a span outside which no claim has gone; empty if none has.
	Within span.Span
	// Projects are those whose claims have gone.
	Projects map[string]bool
	// Made are the waiting reservations, by id, that are looked at whatever has become free.
	Made map[string]bool
}

// BookWaiting books waiting reservations for which the view has room, one after the other, each on what is left by those before it. It leaves out
// those for which what was freed makes no difference, and those that may not be booked now. It tries at most that many searches: looked is
// how many of the line it has come to, -1 if that is all. v.HeldBy must be there.
func BookWaiting(v View, line iter.Seq[*reservation.Reservation], freed Freed, may func(*reservation.Reservation) bool, most int) (booked []reservation.Reservation, looked int) {
	v = v.tersely()
	v.SeesHidden = true // the filter was checked when the request was made
	s := serving{view: v, freed: freed, held: make(map[string]Held)}
	for r := range line {
		looked++
		if !s.helps(r) || !may(r) {
			continue
		}
		if most--; most < 0 {
			return booked, looked - 1
		}
		if next, ok := s.book(r); ok {
			booked = append(booked, next)
		}
	}
	return booked, -1
}

// serving is what BookWaiting has booked so far.
type serving struct {
	view  View // whose calendar has what was booked
	freed Freed
	held  map[string]Held
	gaps  []int64 // see calendar.Gaps; nil until needed
}

// helps reports whether what was freed may make room for r.
func (s *serving) helps(r *reservation.Reservation) bool {
	switch {
	case s.freed.All, s.freed.Made[r.ID]:
		return true
	case s.freed.Within.Empty():
		return false
	case r.Image != "", r.Together.ApartFrom != "": // they depend on more than their own time
		return true
	case s.view.Limits.HostSeconds > 0 && s.freed.Projects[r.ProjectID]:
		return true
	case !r.Window.Overlaps(s.freed.Within):
		return false
	case r.Kind == reservation.Instances:
		return true
	}
	if s.gaps == nil {
		s.gaps = s.view.Calendar.Gaps(s.freed.Within, s.view.Now)
	}
	return r.Quantity <= len(s.gaps) && s.gaps[r.Quantity-1] >= r.Span.Seconds()
}

// book returns r with what it is booked with, and adds that to the view.
func (s *serving) book(r *reservation.Reservation) (reservation.Reservation, bool) {
	v := s.view.of(r)
	v.Project = r.ProjectID
	if held, changed := s.held[r.ProjectID]; changed {
		v.Held = held
	} else {
		v.Held = s.view.HeldBy(r.ProjectID)
	}
	if r.Window.End.Add(-r.Span.Seconds()) < v.Now {
		return *r, false
	}
	plan, ok := v.fits(waited(r, v.Now))
	if !ok {
		return *r, false
	}
	next, err := Booked(*r, plan, v.Now)
	if err != nil {
		return *r, false
	}
	v = v.with(&next)
	s.view.Calendar, s.gaps, s.held[r.ProjectID] = v.Calendar, nil, v.Held
	return next, true
}

// waited returns the request of a waiting reservation.
func waited(r *reservation.Reservation, now span.Instant) reservation.Request {
	req := reservation.Request{Terms: r.Terms, End: r.Window.End, Duration: r.Span.Seconds(), Hold: r.Hold}
	if r.Window.Start > now {
		req.Start = r.Window.Start
	}
	return req
}

// NextRoom returns the first start after the window of a waiting reservation at which there is room; 0 if there is none, or if there may be room
// within the window.
func NextRoom(v View, r *reservation.Reservation) (span.Instant, error) {
	v = v.of(r)
	v.SeesHidden, v.Held.Waiting = true, 0
	req := waited(r, v.Now)
	windows, _, err := Availability(v, req, 1)
	if err != nil || len(windows) > 0 {
		return 0, err
	}
	return NextStart(v, req)
}

// Booked returns a waiting reservation after its booking by a plan. It fails with a Conflict fault if r does not wait.
func Booked(r reservation.Reservation, plan Plan, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Book)
	if err != nil {
		return r, err
	}
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Terms, r.Span, r.Window, r.Claims, r.Hold = plan.Terms, plan.Span, plan.Window, plan.Claims, 0
	r.DelayedByBoot = plan.DelayedByBoot
	r.Events = append(confirmed(r.Events), Happened(reservation.BookedEvent, now, plan.Fallback.Text))
	if plan.HeldUntil != 0 {
		r.Events = append(r.Events, reservation.Event{Type: reservation.ExpireEvent, Time: plan.HeldUntil, State: reservation.EventDue})
	}
	r.Events = lifecycle.Schedule(&r)
	return r, nil
}

// waitsForRoom returns the error for a change of a waiting reservation.
func waitsForRoom() *fault.Error {
	return fault.New(fault.Conflict, "the reservation waits for room; cancel it and ask for another one instead of changing it")
}

// waits returns 1 for a reservation that waits.
func waits(r *reservation.Reservation) int {
	if r.Status == reservation.Waiting {
		return 1
	}
	return 0
}
