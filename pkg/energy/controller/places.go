// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// place is a host as the last steps saw it. A step computes the machine of a host again only if a port may return
// something else about the host, or if the host is due.
type place struct {
	host *inventory.Host

	look   bool         // its machine must be computed in this step
	until  span.Instant // from then on its machine is another one, even if no port returns something else
	unread bool         // it may have changed since the last measurement
	rests  bool         // it has not changed since a measurement that found nothing to do for it

	moves bool // its record has it observed in each step
	calm  bool // no alarm about it is possible unless a reservation needs it or its machine is off
	state energy.State
	begun span.Instant // see energy.Record
	hold  *energy.Hold
}

// locate makes the places of this step's hosts, which are sorted by name, and marks those to look at. They are all places,
// unless Touched returned which hosts have changed.
func (c *Controller) locate(w *world, changed []string, known bool) {
	m := &c.memory
	w.all = !known || w.hosts.Len() != len(m.places)
	if w.all {
		m.places = slices.Grow(m.places[:0], w.hosts.Len())
		for _, h := range w.hosts.Hosts() {
			m.places = append(m.places, place{host: h})
		}
		c.addStrangers(w)
		m.machines = slices.Grow(m.machines[:0], len(m.places))[:len(m.places)]
	} else if m.hosts != w.hosts {
		for i, h := range w.hosts.Hosts() {
			m.places[i].host = h
		}
	}
	m.hosts, w.places, w.machines = w.hosts, m.places, m.machines
	for i := range w.places {
		if p := &w.places[i]; w.all {
			p.mark(w)
		} else if w.now >= p.until {
			p.look = true
		}
	}
	for _, host := range changed {
		if i, there := w.hosts.Index(host); there && !w.all {
			w.places[i].mark(w)
		}
	}
}

// addStrangers adds the hosts that are not awake although they are no longer in the inventory.
func (c *Controller) addStrangers(w *world) {
	m := &c.memory
	for host, r := range w.records {
		if _, there := w.hosts.Index(host); !there && r.Phase != energy.Awake {
			m.places = append(m.places, place{host: &inventory.Host{Name: host, Problem: "it is no longer in the inventory"}})
		}
	}
	if len(m.places) > w.hosts.Len() { // the others are sorted
		slices.SortFunc(m.places, func(a, b place) int { return cmp.Compare(a.host.Name, b.host.Name) })
	}
}

// mark marks a host that may have changed.
func (p *place) mark(w *world) {
	r := w.records[p.host.Name]
	p.look, p.unread, p.moves, p.begun, p.hold = true, true, moves(&r), r.Begun, r.Hold
}

// placeOf returns the index of a host in places and machines; false if it has none.
func (w *world) placeOf(host string) (int, bool) {
	i := sort.Search(len(w.places), func(i int) bool { return w.places[i].host.Name >= host })
	return i, i < len(w.places) && w.places[i].host.Name == host
}

// until returns the first instant after now from which on the machine of a host is another one because of its record.
func until(now span.Instant, r *energy.Record) span.Instant {
	first := span.Forever
	if n := r.SwitchedToday(now); n > 0 {
		first = r.Switches[len(r.Switches)-n].Add(24 * 3600)
	}
	if h := r.Hold; h != nil && h.Until > now {
		first = min(first, h.Until)
	}
	return first
}

// needs is when reservations need hosts.
type needs struct {
	live     []reservation.Reservation
	claimed  map[string]span.Instant // by host: see energy.Machine.Claimed
	serviced map[string]span.Instant // by host in maintenance: its end
	until    span.Instant            // from then on they are other ones for the same reservations
}

// need sets the claims of hosts, and marks the hosts whose claims have changed. As long as Promises returns the same list, only
// the time can change them.
func (c *Controller) need(w *world) {
	before := c.memory.needs
	same := before.claimed != nil && len(w.live) == len(before.live) && (len(w.live) == 0 || &w.live[0] == &before.live[0])
	if !same || w.now >= before.until {
		c.memory.needs = needsOf(w.live, w.now)
	}
	now := &c.memory.needs
	w.claimed, w.serviced = now.claimed, now.serviced
	if w.all || same && w.now < before.until {
		return
	}
	for i := range w.places {
		p := &w.places[i]
		name := p.host.Name
		p.look = p.look || before.claimed[name] != now.claimed[name] || before.serviced[name] != now.serviced[name]
	}
}

// needsOf returns what live reservations need of the hosts at now, and until when this stays the same.
func needsOf(live []reservation.Reservation, now span.Instant) needs {
	n := needs{live: live, claimed: claims(live, now), serviced: serviced(live, now), until: span.Forever}
	for i := range live {
		for _, claim := range live[i].Claims {
			if claim.Span.Start > now && live[i].Maintenance {
				n.until = min(n.until, claim.Span.Start)
			}
			if claim.Span.End > now {
				n.until = min(n.until, claim.Span.End)
			}
		}
	}
	return n
}
