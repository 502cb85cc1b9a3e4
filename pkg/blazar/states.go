// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Blazar's names of the statuses (blazar/status.py).
const (
	pending     = "PENDING"
	starting    = "STARTING"
	active      = "ACTIVE"
	terminating = "TERMINATING"
	terminated  = "TERMINATED"
	deleting    = "DELETING"
	failed      = "ERROR"
)

// KnownStatuses are the statuses that a lease may have in Blazar.
var KnownStatuses = append([]string{"CREATING", "UPDATING"}, LeaseStatuses...)

// LeaseStatuses are the statuses that a lease may have.
var LeaseStatuses = []string{pending, starting, active, terminating, terminated, deleting, failed}

var (
	reservationStatuses = map[reservation.Status]string{
		reservation.Pending:  "pending",
		reservation.Starting: "pending",
		reservation.Active:   "active",
		reservation.Ending:   "active",
		reservation.Ended:    "deleted",
		reservation.Canceled: "deleted",
		reservation.Failed:   "error",
	}
	eventStatuses = map[reservation.EventState]string{
		reservation.EventDue:     "UNDONE",
		reservation.EventRunning: "IN_PROGRESS",
		reservation.EventDone:    "DONE",
	}
)

// Status returns the status of a lease at now. It follows from the reservations of the lease; while
// they differ, the lease is on the way to the later status. Without reservations it follows from the
// clock.
func Status(l *reservation.LeaseRecord, now span.Instant) string {
	has := make(map[reservation.Status]bool)
	for i := range l.Reservations {
		has[l.Reservations[i].Status] = true
	}
	only := func(allowed ...reservation.Status) bool {
		for status := range has {
			if !slices.Contains(allowed, status) {
				return false
			}
		}
		return true
	}
	switch {
	case len(has) == 0:
		return statusByClock(l, now)
	case has[reservation.Failed]:
		return failed
	case only(reservation.Canceled):
		return deleting
	case only(reservation.Ended, reservation.Canceled):
		return terminated
	case has[reservation.Ending] || has[reservation.Ended]:
		return terminating
	case only(reservation.Pending, reservation.Canceled):
		return pending
	case only(reservation.Active, reservation.Canceled):
		return active
	}
	return starting
}

// statusByClock returns the status of a lease without reservations, which follows from its times alone.
func statusByClock(l *reservation.LeaseRecord, now span.Instant) string {
	switch {
	case l.Deleted != 0:
		return deleting
	case now < l.Span.Start:
		return pending
	case now < l.Span.End:
		return active
	}
	return terminated
}

// progress is how far an event of a lease is.
type progress struct {
	at     span.Instant
	status string
	done   span.Instant // when it was done; 0 means not
}

// underWay are the events that reservations of a status are in.
var underWay = map[reservation.Status]reservation.EventType{reservation.Starting: reservation.StartEvent, reservation.Ending: reservation.EndEvent}

// progressOf returns how far the events of one type are that the reservations of a lease have; at is
// when it is due without any. ok is false if no reservation has one.
func progressOf(l *reservation.LeaseRecord, t reservation.EventType, at span.Instant) (p progress, ok bool) {
	states := make(map[reservation.EventState]bool)
	for i := range l.Reservations {
		e, has := l.Reservations[i].LastEvent(t)
		if !has {
			e.State = reservation.EventDue
		} else {
			p.at, ok = max(p.at, e.Time), true
		}
		if underWay[l.Reservations[i].Status] == t && e.State == reservation.EventDue {
			e.State = reservation.EventRunning // Almanac tries it again
		}
		states[e.State] = true
		p.done = max(p.done, e.Done)
	}
	if !ok {
		p.at = at
	}
	switch {
	case len(states) == 1 && states[reservation.EventDone]:
		p.status = eventStatuses[reservation.EventDone]
		return p, ok
	case states[reservation.EventRunning] || states[reservation.EventDone]:
		p.status = eventStatuses[reservation.EventRunning]
	default:
		p.status = eventStatuses[reservation.EventDue]
	}
	p.done = 0
	return p, ok
}

// progressByClock returns how far an event of a lease without reservations is.
func progressByClock(at, now span.Instant) progress {
	if now < at {
		return progress{at: at, status: eventStatuses[reservation.EventDue]}
	}
	return progress{at: at, status: eventStatuses[reservation.EventDone], done: at}
}
