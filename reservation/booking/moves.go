// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// This file has what lets a request move reservations with a notice, of any project, when it has no room without. Maintenance, and a
// reservation that is to end later, also move others to other hosts.

// plan decides on a request. moved are the reservations that move so that it has room, after their moves.
func (d *Bookings) plan(v *view, req reservation.Request) (plan planning.Plan, moved []reservation.Reservation, err error) {
	plan, err = planning.NewPlan(v.View, req)
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	among := v.state.live.movable
	if req.Maintenance {
		among = v.state.live.byStart
	}
	if !refused || req.Hold > 0 || refusal.Constraint != reservation.HostsFree {
		return plan, nil, err
	}
	d.letMove(v, among)
	if better, moved, ok := planning.PlanWithMoves(v.View, req); ok {
		return better, moved, nil
	}
	return plan, nil, err
}

// letMove lets the decision on v move some reservations. Of those that a usage service has allowed, none may.
func (d *decider) letMove(v *view, among timetable) {
	if d.options.Enforcement != nil || among.count() == 0 {
		return
	}
	v.HeldBy = func(project string) planning.Held { return d.heldBy(v, project) }
	v.Movable = func(w span.Span) []*reservation.Reservation { return d.movable(among, w) }
}

// mostScanned is how many reservations one decision looks at.
const mostScanned = 10_000

// movable returns those of the reservations that overlap a span, apart from those that are changing.
func (m *memory) movable(among timetable, w span.Span) (list []*reservation.Reservation) {
	scanned := 0
	for r := range among.until(w.End - 1) {
		if scanned++; scanned > mostScanned {
			break
		}
		if r.Span.Overlaps(w) {
			list = append(list, r)
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	settled := list[:0]
	for _, r := range list {
		if e := m.live[r.ID]; e != nil && e.attempt == nil && e.changing.Empty() && e.r.Version == r.Version {
			settled = append(settled, r)
		}
	}
	return settled
}

// heldBy returns what a project holds. If that changes, the decision on v no longer holds.
func (m *memory) heldBy(v *view, project string) planning.Held {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, known := v.held[project]; !known {
		v.held[project] = m.held[project]
	}
	return v.held[project]
}

// movesOf returns the attempts to store moves of reservations, whose entries it locks, for a request with an id.
func (d *decider) movesOf(requestID string, moved []reservation.Reservation) (attempts []*attempt, err error) {
	return d.attemptsOn(reservation.Cause{Action: reservation.ActionMove, RequestID: requestID}, moved)
}

// attemptsOn returns the attempts to store others together with a change, whose entries it locks. With errOvertaken it returns none.
func (d *decider) attemptsOn(cause reservation.Cause, changed []reservation.Reservation) (attempts []*attempt, err error) {
	defer func() {
		if err != nil {
			leave(attempts)
			attempts = nil
		}
	}()
	for _, r := range changed {
		e, live := d.entry(r.ID)
		if !live || !e.changing.Try(byRequest) {
			return attempts, errOvertaken
		}
		d.mu.RLock()
		a := &attempt{entry: e, before: e.r, next: r}
		d.mu.RUnlock()
		a.cause = cause
		a.cause.Detail = planning.Difference(a.before, a.next)
		if attempts = append(attempts, a); a.before.Version != r.Version-1 {
			return attempts, errOvertaken
		}
	}
	return attempts, nil
}

// enterMoves adds the claims of a new reservation to the calendar, and begins the moves of others that make room for it, all or none. v is
// the view on which they were decided. The entries of all are locked. Until they are stored, the new one has in the calendar, at each instant,
// the larger of the old and the new claims of all.
func (d *decider) enterMoves(v *view, fresh *attempt, moves []*attempt) error {
	attempts := append([]*attempt{fresh}, moves...)
	d.mu.Lock()
	defer d.mu.Unlock()
	var before, after []calendar.Claim
	for i, a := range attempts {
		if i > 0 {
			if a.entry.over || a.entry.attempt != nil || a.entry.r.Version != a.before.Version {
				return errOvertaken
			}
			a.held = []calendar.Claim{}
			before = append(before, d.calendarClaims(&a.before, a.before.Claims)...)
		}
		if d.outdated(v, a.next.ProjectID) || !d.unchanged(v, hostsAnew(a.before, a.next)) {
			return errOvertaken
		}
		after = append(after, d.calendarClaims(&a.next, a.next.Claims)...)
	}
	held := planning.Envelope(before, after)
	d.release(before)
	if err := d.calendar.Restore(held...); err != nil {
		d.restore(before)
		return fmt.Errorf("hold the hosts of the moves: %w", err)
	}
	fresh.held, fresh.joint = held, true
	d.addLive(fresh.entry)
	d.begin(attempts...)
	return nil
}
