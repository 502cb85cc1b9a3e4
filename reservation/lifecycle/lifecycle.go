// SPDX-License-Identifier: Apache-2.0

// Package lifecycle contains the life cycle of a reservation: the table of statuses and triggers,
// and which events are due when. Its functions are pure; the packages that carry events out read
// the next status from it.
package lifecycle

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Trigger is what moves a reservation from one status to another.
type Trigger string

// The triggers.
const (
	Book      Trigger = "book"       // there is room for what has waited
	Start     Trigger = "start"      // the start is due
	Started   Trigger = "started"    // the hosts belong to the owner
	Fail      Trigger = "fail"       // the promise cannot be kept
	BeforeEnd Trigger = "before_end" // the owner is warned
	End       Trigger = "end"        // the end is due
	Finished  Trigger = "finished"   // the hosts are free again
	Cancel    Trigger = "cancel"     // the owner cancels
)

// Triggers lists all triggers.
var Triggers = []Trigger{Book, Start, Started, Fail, BeforeEnd, End, Finished, Cancel}

// table contains the next status by status and trigger; other transitions are not allowed.
var table = map[reservation.Status]map[Trigger]reservation.Status{
	reservation.Waiting: {
		Book:   reservation.Pending,
		Cancel: reservation.Canceled,
	},
	reservation.Pending: {
		Start:  reservation.Starting,
		Fail:   reservation.Failed,
		Cancel: reservation.Canceled,
	},
	reservation.Starting: {
		Start:   reservation.Starting, // another replica starts over
		Started: reservation.Active,
		Fail:    reservation.Failed,
		Cancel:  reservation.Canceled,
	},
	reservation.Active: {
		BeforeEnd: reservation.Active,
		End:       reservation.Ending,
		Fail:      reservation.Failed,
		Cancel:    reservation.Canceled,
	},
	reservation.Ending: {
		End:      reservation.Ending, // another replica starts over
		Finished: reservation.Ended,
		Fail:     reservation.Failed,
	},
	reservation.Ended:    {},
	reservation.Canceled: {},
	reservation.Failed:   {},
}

// Next returns the status that follows, or a Conflict fault if the trigger is not allowed
// in this status.
func Next(s reservation.Status, t Trigger) (reservation.Status, error) {
	next, ok := table[s][t]
	if !ok {
		return s, fault.New(fault.Conflict, "a reservation that is %s cannot take %q", s, t)
	}
	return next, nil
}

// carried lists what carries out an event that is due: its triggers, in order, and the action in the audit trail when
// it is done.
var carried = map[reservation.EventType]struct {
	action   reservation.Action
	triggers []Trigger
}{
	reservation.ExpireEvent:    {reservation.ActionExpire, []Trigger{Cancel}},
	reservation.StartEvent:     {reservation.ActionStart, []Trigger{Start, Started}},
	reservation.BeforeEndEvent: {reservation.ActionWarnOfEnd, []Trigger{BeforeEnd}},
	reservation.EndEvent:       {reservation.ActionEnd, []Trigger{End, Finished}},
}

// Action returns the action in the audit trail of an event that is done.
func Action(event reservation.EventType) reservation.Action { return carried[event].action }

// TakesWork reports whether an event may require work in the cloud. Other events are done
// as soon as they begin.
func TakesWork(event reservation.EventType) bool { return len(carried[event].triggers) > 1 }

// Begin returns the status while an event is carried out.
func Begin(s reservation.Status, event reservation.EventType) (reservation.Status, error) {
	return follow(s, carried[event].triggers[:1])
}

// Finish returns the status after an event that has begun.
func Finish(s reservation.Status, event reservation.EventType) (reservation.Status, error) {
	return follow(s, carried[event].triggers[1:])
}

// follow returns the status after the triggers, one after the other; an error for one that the status
// cannot take.
func follow(s reservation.Status, triggers []Trigger) (reservation.Status, error) {
	for _, t := range triggers {
		next, err := Next(s, t)
		if err != nil {
			return s, err
		}
		s = next
	}
	return s, nil
}

// Schedule returns the log of r with the events that its span requires. Events that are done, and the end of a hold, stay;
// other pending ones are replaced. A warning that was sent for an earlier end is scheduled again for a
// later one. A warning that would be due at or before the start is left out.
func Schedule(r *reservation.Reservation) []reservation.Event {
	log := slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool {
		return e.State == reservation.EventDue && e.Type != reservation.ExpireEvent
	})
	if r.Status == reservation.Waiting {
		return log
	}
	if r.Status == reservation.Pending {
		log = append(log, due(reservation.StartEvent, r.Span.Start))
	}
	warning := r.Span.End - span.Instant(r.BeforeEnd)
	if r.BeforeEnd > 0 && warning > r.Span.Start && !warned(log, warning) {
		log = append(log, due(reservation.BeforeEndEvent, warning))
	}
	return append(log, due(reservation.EndEvent, r.Span.End))
}

// Reschedule is Schedule for r after a change at now, before being what it was. If the end stays and a warning was sent,
// another one is sent only if its time lies ahead.
func Reschedule(before, r *reservation.Reservation, now span.Instant) []reservation.Event {
	log := Schedule(r)
	sent := func(e reservation.Event) bool {
		return e.Type == reservation.BeforeEndEvent && e.State != reservation.EventDue
	}
	if before.Span.End != r.Span.End || !slices.ContainsFunc(before.Events, sent) {
		return log
	}
	return slices.DeleteFunc(log, func(e reservation.Event) bool {
		was := func(o reservation.Event) bool { return o.Type == e.Type && o.Time == e.Time }
		return e.Type == reservation.BeforeEndEvent && e.State == reservation.EventDue && e.Time <= now && !slices.ContainsFunc(before.Events, was)
	})
}

func due(t reservation.EventType, at span.Instant) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.EventDue}
}

func warned(log []reservation.Event, at span.Instant) bool {
	return slices.ContainsFunc(log, func(e reservation.Event) bool {
		return e.Type == reservation.BeforeEndEvent && e.Time >= at
	})
}

// Due returns the index in the log of the next event; false if all are done. Events of the same
// time keep the order of the log.
func Due(r *reservation.Reservation) (int, bool) {
	first, found := 0, false
	for i, e := range r.Events {
		if e.State != reservation.EventDone && (!found || e.Time < r.Events[first].Time) {
			first, found = i, true
		}
	}
	return first, found
}

// At returns when an event is due: at its time, or later if it was put off. ok is false if
// the event is running or done.
func At(e reservation.Event) (at span.Instant, ok bool) {
	return max(e.Time, e.Until), e.State == reservation.EventDue
}
