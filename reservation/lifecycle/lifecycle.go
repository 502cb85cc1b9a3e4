// Package lifecycle has the life of a reservation as one table: which state
// follows on which trigger, and which events are due when.
//
// It decides nothing else and acts on nothing; whoever carries an event out asks
// it what comes next.
package lifecycle

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Trigger is what moves a reservation from one state to another.
type Trigger string

// The triggers.
const (
	Start     Trigger = "start"      // the start is due
	Started   Trigger = "started"    // the hosts are the owner's
	Fail      Trigger = "fail"       // the promise cannot be kept
	BeforeEnd Trigger = "before_end" // the owner is warned
	End       Trigger = "end"        // the end is due
	Finished  Trigger = "finished"   // the hosts are given back
	Cancel    Trigger = "cancel"     // the owner gives up
)

// Triggers are all triggers.
var Triggers = []Trigger{Start, Started, Fail, BeforeEnd, End, Finished, Cancel}

// table has the state that follows; what is not in it must not happen.
var table = map[reservation.Status]map[Trigger]reservation.Status{
	reservation.Pending: {
		Start:  reservation.Starting,
		Fail:   reservation.Failed,
		Cancel: reservation.Cancelled,
	},
	reservation.Starting: {
		Start:   reservation.Starting, // begun anew by another
		Started: reservation.Active,
		Fail:    reservation.Failed,
		Cancel:  reservation.Cancelled,
	},
	reservation.Active: {
		BeforeEnd: reservation.Active,
		End:       reservation.Ending,
		Fail:      reservation.Failed,
		Cancel:    reservation.Cancelled,
	},
	reservation.Ending: {
		End:      reservation.Ending, // begun anew by another
		Finished: reservation.Ended,
		Fail:     reservation.Failed,
	},
	reservation.Ended:     {},
	reservation.Cancelled: {},
	reservation.Failed:    {},
}

// Next gives the state that follows, and a Conflict fault where the trigger has
// no place in the state.
func Next(s reservation.Status, t Trigger) (reservation.Status, error) {
	next, ok := table[s][t]
	if !ok {
		return s, fault.New(fault.Conflict, "a reservation that is %s cannot take %q", s, t)
	}
	return next, nil
}

// carried has the triggers of an event, in their order.
var carried = map[reservation.EventType][]Trigger{
	reservation.StartEvent:     {Start, Started},
	reservation.BeforeEndEvent: {BeforeEnd},
	reservation.EndEvent:       {End, Finished},
}

// TakesWork says that an event may have work to do on the cloud; the others are done as
// they are begun.
func TakesWork(event reservation.EventType) bool { return len(carried[event]) > 1 }

// Begin gives the state while an event is carried out, and Finish the one after it.
func Begin(s reservation.Status, event reservation.EventType) (reservation.Status, error) {
	return follow(s, carried[event][:1])
}

// Finish gives the state after an event that has begun.
func Finish(s reservation.Status, event reservation.EventType) (reservation.Status, error) {
	return follow(s, carried[event][1:])
}

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

// Schedule gives the log of r with the events that its span asks for: those done
// stay, those due are entered anew. A warning that was given for an earlier end is
// given again for a later one. One that would be due at the start or earlier is left out:
// it would say nothing that the start does not.
func Schedule(r *reservation.Reservation) []reservation.Event {
	log := slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool { return e.State == reservation.Due })
	if r.Status == reservation.Pending {
		log = append(log, due(reservation.StartEvent, r.Span.Start))
	}
	warning := r.Span.End - span.Instant(r.BeforeEnd)
	if r.BeforeEnd > 0 && warning > r.Span.Start && !warned(log, warning) {
		log = append(log, due(reservation.BeforeEndEvent, warning))
	}
	return append(log, due(reservation.EndEvent, r.Span.End))
}

func due(t reservation.EventType, at span.Instant) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.Due}
}

func warned(log []reservation.Event, at span.Instant) bool {
	return slices.ContainsFunc(log, func(e reservation.Event) bool {
		return e.Type == reservation.BeforeEndEvent && e.Time >= at
	})
}

// Due gives the place in the log of the event that comes next, false where all
// are done. Events of one time keep the order of the log.
func Due(r *reservation.Reservation) (int, bool) {
	first, found := 0, false
	for i, e := range r.Events {
		if e.State != reservation.Done && (!found || e.Time < r.Events[first].Time) {
			first, found = i, true
		}
	}
	return first, found
}

// At gives when an event is to be carried out: at its time, or later where it was
// put off. ok is false for one that runs or is done.
func At(e reservation.Event) (at span.Instant, ok bool) {
	return max(e.Time, e.Until), e.State == reservation.Due
}
