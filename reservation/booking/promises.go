// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Revision increases with every change of what is promised, and may increase without one. Results
// that were read after a revision stay true while the revision stays the same, apart from what
// depends on the time.
func (d *Service) Revision() uint64 { return d.mu.revision.Load() }

// Reservation returns a live reservation; false means that none has that id.
func (d *Service) Reservation(id string) (reservation.Reservation, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.live[id]; ok {
		return e.r, true
	}
	return reservation.Reservation{}, false
}

// InLease returns the ids of the project's live reservations in the lease, sorted.
func (d *Service) InLease(lease, project string) (ids []string) {
	for r := range d.state().live.byStart.until(span.Forever) {
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
func (d *Service) Promised(t span.Instant) []reservation.Claim {
	s := d.state()
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
func (d *Service) Fillable(t span.Instant, ahead int64) map[string]bool {
	hosts, kept := map[string]bool{}, map[string]bool{}
	for r := range d.state().live.byStart.until(t.Add(ahead)) {
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
func (d *Service) Snapshot() *inventory.Snapshot {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hosts.Snapshot()
}

// Live returns the live reservations whose span overlaps w, sorted by start, then id.
func (d *Service) Live(w span.Span) []reservation.Reservation {
	return d.state().overlapping(w)
}

func (s *state) overlapping(w span.Span) (list []reservation.Reservation) {
	for r := range s.live.byStart.until(w.End - 1) {
		if r.Span.Overlaps(w) {
			list = append(list, *r)
		}
	}
	return list
}

// Availability returns at most limit windows in which there is room for the requested quantity and
// duration, and the number of hosts that match. It applies the limits as a booking does: the error
// is a *reservation.Refusal if they allow no start.
func (d *Service) Availability(ctx context.Context, by Caller, req reservation.Request, limit int) (windows []calendar.Window, matched int, err error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return nil, 0, err
	}
	defer d.deciding.Leave(by.ProjectID)
	return planning.Availability(d.view(by, by.ProjectID).View, req, limit)
}

// Occupants returns the instances on the hosts of a plan that somebody must move before maintenance:
// those that are not preemptible, without those that leave at the end of a live reservation. They are
// sorted by host, then id.
func (d *Service) Occupants(p planning.Plan) (list []inventory.Instance) {
	s := d.state()
	live := map[string]bool{}
	for r := range s.live.byStart.until(p.Span.Start) {
		live[r.ID] = r.OnEnd != reservation.OnEndLeave
	}
	hosts := (&reservation.Reservation{Claims: p.Claims}).HostNames()
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
