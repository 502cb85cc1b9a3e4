// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"iter"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Promises are what others read of memory: the live reservations and what is promised to them. Each call
// answers as of one moment, and waits for no decision.
type Promises struct{ *memory }

// Revision increases with every change of what is promised, and may increase without one. Results
// that were read after a revision stay true while the revision stays the same, apart from what
// depends on the time.
func (p *Promises) Revision() uint64 { return p.mu.revision.Load() }

// Reservation returns a live reservation; false means that none has that id.
func (p *Promises) Reservation(id string) (reservation.Reservation, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if e, ok := p.live[id]; ok {
		return e.r, true
	}
	return reservation.Reservation{}, false
}

// InLease returns the ids of the project's live reservations in the lease, sorted.
func (p *Promises) InLease(lease, project string) (ids []string) {
	for r := range p.state().live.byStart.until(span.Forever) {
		if lease != "" && r.Membership.LeaseID == lease && r.BelongsTo(project) {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Promised returns each host that is promised at t or later, once, with the first claim that is
// not over at t: one that ends after t, or whose reservation has not ended yet. Claims that
// touch or overlap are merged, without Slices.
func (p *Promises) Promised(t span.Instant) []reservation.Claim {
	s := p.state()
	overdue := s.overdue(t)
	var claims []reservation.Claim
	for number, name := range s.hosts.Names() {
		next, ok := s.calendar.NextBusy(number, t)
		if late, is := overdue[name]; is {
			next, ok = late, true
		}
		if ok {
			claims = append(claims, reservation.Claim{Host: name, Span: next})
		}
	}
	return claims
}

// Fillable returns the hosts that active reservations have at t, without those in maintenance, and
// without those that another reservation has or that one needs within ahead seconds.
func (p *Promises) Fillable(t span.Instant, ahead int64) map[string]bool {
	hosts, kept := map[string]bool{}, map[string]bool{}
	for r := range p.state().live.byStart.until(t.Add(ahead)) {
		for _, c := range r.Claims {
			switch {
			case r.Status == reservation.Active && !r.Maintenance && c.Span.Contains(t):
				hosts[c.Host] = true
			case c.Span.Start <= t.Add(ahead) && (c.Span.End > t || c.Span.End == r.Span.End):
				kept[c.Host] = true // the reservation is late, is ending, starts soon, or is maintenance
			}
		}
	}
	maps.DeleteFunc(hosts, func(host string, _ bool) bool { return kept[host] })
	return hosts
}

// overdue returns the hosts of reservations that are live beyond their span, with that span.
func (s *state) overdue(t span.Instant) map[string]span.Span {
	late := map[string]span.Span{}
	for r := range s.live.byRelease.until(t) {
		if r.Span.End > t {
			continue // only some of its hosts were released
		}
		for _, c := range r.Claims {
			if c.Span.End == r.Span.End {
				late[c.Host] = c.Span
			}
		}
	}
	return late
}

// Snapshot returns the inventory that decisions use.
func (p *Promises) Snapshot() *inventory.Snapshot {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.hosts.Snapshot()
}

// Live returns the live reservations whose span overlaps w, sorted by start, then id.
func (p *Promises) Live(w span.Span) []reservation.Reservation {
	return p.state().overlapping(w)
}

func (s *state) overlapping(w span.Span) (list []reservation.Reservation) {
	for r := range s.live.byStart.until(w.End - 1) {
		if r.Span.Overlaps(w) {
			list = append(list, *r)
		}
	}
	return list
}

// Occupants returns the instances on the hosts of a plan that somebody must move before maintenance:
// those that are not preemptible, without those that leave at the end of a live reservation. They are
// sorted by host, then id.
func (p *Promises) Occupants(plan planning.Plan) (list []inventory.Instance) {
	s := p.state()
	live := map[string]bool{}
	for r := range s.live.byStart.until(plan.Span.Start) {
		live[r.ID] = r.OnEnd != reservation.OnEndLeave
	}
	hosts := (&reservation.Reservation{Claims: plan.Claims}).HostNames()
	slices.Sort(hosts)
	for _, name := range hosts {
		number, _ := s.hosts.Number(name)
		h := s.hosts.Host(number)
		if h == nil {
			continue
		}
		for _, i := range h.Instances {
			if !i.Preemptible && !live[i.ReservationID()] {
				list = append(list, i)
			}
		}
	}
	return list
}

// Counted returns the numbers of live reservations.
func (p *Promises) Counted() Counted {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return Counted{maps.Clone(p.counted.ByStatus), p.counted.Degraded}
}

// Overdue yields the live reservations whose first event that is not done was due before t, the longest overdue first.
// They must not be changed.
func (p *Promises) Overdue(t span.Instant) iter.Seq[*reservation.Reservation] {
	return p.state().live.byDue.until(t - 1)
}

// Listen makes the service call l from now on. It replaces the previous listener.
func (p *Promises) Listen(l Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
}

// FollowedUntil returns an instant such that the service has learned of everything that was stored
// before.
func (p *Promises) FollowedUntil() span.Instant {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.followed
}

// Fingerprint returns a number that identifies the live reservations with their versions. It is the
// same in all replicas that have the same ones.
func (p *Promises) Fingerprint() uint64 { return p.state().marks }

// LiveMarked returns Live with the Fingerprint of the same moment.
func (p *Promises) LiveMarked(w span.Span) ([]reservation.Reservation, uint64) {
	s := p.state()
	return s.overlapping(w), s.marks
}

// Use is what a project's live reservations hold now. An instance counts as one host.
type Use struct {
	Reservations int
	HostsNow     int
	MostHosts    int // at one instant, from now on
	HostSeconds  int64
	Holds        int // reservations that nobody has confirmed yet
	Waiting      int // reservations that wait for room, which Reservations does not count
}

// OnEnds returns what a request may choose for the end of a reservation now.
func (p *Promises) OnEnds() []reservation.OnEnd {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.options.Defaults.OnEnds()
}

// Use returns the limits, and what a project uses of them.
func (p *Promises) Use(project string) (planning.Limits, Use) {
	p.mu.RLock()
	held, limits := p.held[project], p.options.Limits
	p.mu.RUnlock()
	now := p.options.Now()
	u := Use{
		HostsNow: held.Hosts.At(now), MostHosts: held.Hosts.Most(span.Span{Start: now, End: span.Forever}), HostSeconds: held.HostSeconds,
		Holds: held.Holds.At(now), Waiting: held.Waiting,
	}
	for r := range p.state().live.byStart.until(span.Forever) {
		if r.BelongsTo(project) && !r.Maintenance {
			u.Reservations++
		}
	}
	return limits, u
}
