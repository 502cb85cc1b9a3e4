// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Options are the situation in which Blazar is taken over, and the operator's choices.
type Options struct {
	Now span.Instant
	// Hosts are the hosts of Almanac's inventory, with the capabilities of Blazar's hosts.
	Hosts *inventory.Snapshot
	// Live are Almanac's live reservations.
	Live []reservation.Reservation
	// Stored contains the ids of those of Blazar's leases and reservations that Almanac has already,
	// also deleted ones.
	Stored map[string]bool
	// Leave are the kinds of findings with which the takeover goes on.
	Leave []Kind
	// History is true if leases that have ended are taken over too.
	History bool
}

// Plan is what is taken over.
type Plan struct {
	// Leases are new to Almanac, sorted by start, then id.
	Leases   []reservation.LeaseRecord
	Findings []Finding
}

// planner makes one plan.
type planner struct {
	options      Options
	plan         Plan
	hosts        map[string]Host   // Blazar's, by id
	names        map[string]string // of hosts in Almanac, by id in Blazar; "" if Almanac lacks it
	reservations map[string][]Reservation
	events       map[string][]Event
	allocations  map[string][]string // ids of hosts, by reservation
}

// New returns the plan to take over what is in the database. names are the hosts as NameHosts
// returns them.
func New(db Database, names map[string]string, o Options) Plan {
	p := planner{
		options: o, names: names,
		hosts: make(map[string]Host), reservations: make(map[string][]Reservation),
		events: make(map[string][]Event), allocations: make(map[string][]string),
	}
	for _, h := range db.Hosts {
		p.hosts[h.ID] = h
	}
	for _, r := range db.Reservations {
		p.reservations[r.LeaseID] = append(p.reservations[r.LeaseID], r)
	}
	for _, e := range db.Events {
		p.events[e.LeaseID] = append(p.events[e.LeaseID], e)
	}
	for _, a := range db.Allocations {
		p.allocations[a.ReservationID] = append(p.allocations[a.ReservationID], a.HostID)
	}
	p.takeLeases(db.Leases)
	p.keepApart()
	for _, address := range db.FloatingIPs {
		p.find(Address, "", "", "the floating IP address %s is in Blazar's pool, which is not taken over; enroll it in Almanac when Blazar's leases of it are over", address)
	}
	slices.SortFunc(p.plan.Leases, func(a, b reservation.LeaseRecord) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
	})
	return p.plan
}

// takeLeases adds the leases to the plan, those that were made first first, which double bookings
// are decided by.
func (p *planner) takeLeases(leases []Lease) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	there := 0
	for _, l := range leases {
		if p.stored(l) {
			there++
			continue
		}
		taken, ok := p.lease(l)
		if ok {
			p.plan.Leases = append(p.plan.Leases, taken)
		}
	}
	if there > 0 {
		p.find(There, "", "", "%d leases are in Almanac's database already; they stay as they are there", there)
	}
}

// stored reports whether Almanac has the lease or one of its reservations.
func (p *planner) stored(l Lease) bool {
	return p.options.Stored[l.ID] || slices.ContainsFunc(p.reservations[l.ID], func(r Reservation) bool { return p.options.Stored[r.ID] })
}
