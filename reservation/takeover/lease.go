// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// lease returns the lease with those of its reservations that Almanac can take over; false if it
// cannot be taken over.
func (p *planner) lease(l Lease) (reservation.LeaseRecord, bool) {
	status, ok := p.status(l)
	if !ok {
		return reservation.LeaseRecord{}, false
	}
	warning, _ := event(p.events[l.ID], beforeEnd)
	taken := reservation.LeaseRecord{Lease: reservation.Lease{
		ID: l.ID, ProjectID: l.ProjectID, UserID: l.UserID, Name: l.Name, Span: span.Span{Start: l.Start, End: l.End},
		BeforeEnd: warning.Time, Created: l.Created, Updated: l.Updated, Version: 1,
	}}
	left := 0
	for _, r := range p.reservations[l.ID] {
		if r.Hosts == nil && r.Instances == nil {
			p.find(Unsupported, l.ID, "end it in Blazar, or leave it: it then lasts in the cloud until you remove it",
				"lease %s has a reservation of type %s, which is not taken over: %s", l.Name, r.Type, r.ID)
			left++
			continue
		}
		member, ok := p.member(l, r, status)
		if !ok {
			return reservation.LeaseRecord{}, false
		}
		taken.Reservations = append(taken.Reservations, member)
	}
	slices.SortFunc(taken.Reservations, func(a, b reservation.Reservation) int { return strings.Compare(a.ID, b.ID) })
	p.tellOfEvents(l, status)
	return taken, left == 0 || left < len(p.reservations[l.ID])
}

// status returns the status of the lease's reservations, which follows from its events as in
// Blazar's LeaseStatus.derive_stable_status; false if the lease cannot be taken over.
func (p *planner) status(l Lease) (reservation.Status, bool) {
	start, starts := event(p.events[l.ID], startLease)
	end, ends := event(p.events[l.ID], endLease)
	failed := l.Status == leaseError || start.Status == eventError || end.Status == eventError ||
		slices.ContainsFunc(p.reservations[l.ID], func(r Reservation) bool { return r.Status == "error" })
	switch {
	case l.Status == leaseTerminated:
		if !p.options.History {
			p.find(Over, l.ID, "", "lease %s has ended and is not taken over", l.Name)
		}
		return reservation.Ended, p.options.History
	case l.Status == leaseCreating || l.Status == leaseDeleting:
		p.find(Unfinished, l.ID, "start Blazar and wait until it has finished, or delete the lease there",
			"lease %s is %s: Blazar has not finished that", l.Name, l.Status)
		return "", false
	case failed && l.End <= p.options.Now:
		p.find(Over, l.ID, "look for servers, aggregates and flavors that it has left, and delete the lease in Blazar",
			"lease %s is in ERROR and its time is over; it is not taken over", l.Name)
		return "", false
	case failed:
		p.find(InError, l.ID, "set it right or delete it in Blazar", "lease %s is in ERROR until %v", l.Name, l.End)
		return "", false
	case !starts || !ends || l.End <= l.Start || end.Status == eventDone:
		p.find(Unreadable, l.ID, "delete the lease in Blazar", "lease %s is %s, which its times and events contradict", l.Name, l.Status)
		return "", false
	case start.Status == eventDone:
		return reservation.Active, true
	}
	return reservation.Pending, true
}

// tellOfEvents adds the findings about the events of a lease that is taken over.
func (p *planner) tellOfEvents(l Lease, status reservation.Status) {
	others := 0
	for _, e := range p.events[l.ID] {
		switch overdue := e.Status != eventDone && e.Time <= p.options.Now && status.Live(); {
		case e.Type != startLease && e.Type != endLease && e.Type != beforeEnd:
			others++
		case overdue:
			p.find(Overdue, l.ID, "", "the event %s of lease %s was due at %v; Almanac carries it out as soon as it runs", e.Type, l.Name, e.Time)
		}
	}
	if others > 0 {
		p.find(Extra, l.ID, "", "lease %s has %d events that its owner added; Blazar never carries them out, and Almanac does not keep them", l.Name, others)
	}
}

// event returns the event of a type; false if there is none.
func event(events []Event, t string) (Event, bool) {
	at := slices.IndexFunc(events, func(e Event) bool { return e.Type == t })
	if at < 0 {
		return Event{}, false
	}
	return events[at], true
}
