// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// keepApart removes from the plan the leases whose claims do not fit beside those of Almanac's
// reservations and of the leases before them. It enters the claims into a calendar, as Almanac does
// when it starts.
func (p *planner) keepApart() {
	b := book{numbers: make(map[string]int), calendar: calendar.New(nil, p.options.Now)}
	blazars := make(map[string]Host) // by name in Almanac
	for id, h := range p.hosts {
		blazars[p.names[id]] = h
	}
	for _, h := range p.options.Hosts.Hosts() {
		b.numbers[h.Name] = b.calendar.AddHost(larger(h.Capacity, blazars[h.Name]))
	}
	for _, r := range p.options.Live {
		b.restore("Almanac's reservation "+r.ID, r)
	}
	p.plan.Leases = slices.DeleteFunc(p.plan.Leases, func(l reservation.LeaseRecord) bool {
		for i := range l.Reservations {
			r := &l.Reservations[i]
			if host, rivals := b.enter(named(&l.Lease), *r); host != "" {
				p.find(DoubleBooked, l.ID, "delete one of them in Blazar, or leave the one that was made later",
					"%s does not fit on host %s beside %s", named(&l.Lease), host, strings.Join(rivals, ", "))
				b.forget(l.Reservations[:i])
				return true
			}
			p.compare(&l.Lease, r)
		}
		return false
	})
}

func named(l *reservation.Lease) string {
	return "lease " + l.ID + " (" + l.Name + ", " + l.Span.Start.String() + " to " + l.Span.End.String() + ")"
}

// larger returns the larger of the capacities that Almanac and Blazar know of a host: what fits into
// that of Blazar is no double booking, even if Placement has less.
func larger(capacity resource.Vector, h Host) resource.Vector {
	return capacity.Max(resource.Vector{VCPUs: h.VCPUs, MemoryMB: h.MemoryMB, DiskGB: h.DiskGB})
}

// compare adds the finding that the instances of a reservation do not fit on a host as Almanac knows
// it.
func (p *planner) compare(l *reservation.Lease, r *reservation.Reservation) {
	for _, c := range r.Claims {
		at, there := p.options.Hosts.Index(c.Host)
		if there && c.Slices > 0 && !r.Resources.Scale(int64(c.Slices)).Fits(p.options.Hosts.Host(at).Capacity) {
			p.find(Size, l.ID, "compare the inventory of the host in Placement with os-hosts in Blazar",
				"lease %s: Placement has less of host %s than the %d instances that Blazar has promised there; not all may start", l.Name, c.Host, c.Slices)
		}
	}
}

// book is a calendar with the owners of its claims.
type book struct {
	numbers  map[string]int
	calendar *calendar.Calendar
	owners   []owned
}

type owned struct {
	name string
	r    reservation.Reservation
}

// enter adds the claims of a reservation. If one does not fit, it adds none and returns its host and
// the owners of the claims there that overlap it.
func (b *book) enter(name string, r reservation.Reservation) (host string, rivals []string) {
	for i, c := range r.Claims {
		if b.calendar.Add(b.claim(&r, c)) != nil {
			b.withdraw(&r, r.Claims[:i])
			return c.Host, b.rivals(name, c)
		}
	}
	b.owners = append(b.owners, owned{name, r})
	return "", nil
}

// restore adds the claims of a reservation that Almanac has promised.
func (b *book) restore(name string, r reservation.Reservation) {
	for _, c := range r.Claims {
		if _, known := b.numbers[c.Host]; !known { // a host that has left the cloud
			b.numbers[c.Host] = b.calendar.AddHost(resource.Vector{})
		}
		_ = b.calendar.Restore(b.claim(&r, c)) // Almanac's own claims fit beside each other
	}
	b.owners = append(b.owners, owned{name, r})
}

func (b *book) claim(r *reservation.Reservation, c reservation.Claim) calendar.Claim {
	entry := calendar.Claim{Host: b.numbers[c.Host], Span: c.Span}
	if r.Kind == reservation.Instances {
		entry.Slice = r.Resources.Scale(int64(c.Slices))
	}
	return entry
}

func (b *book) withdraw(r *reservation.Reservation, claims []reservation.Claim) {
	for _, c := range claims {
		_ = b.calendar.Remove(b.claim(r, c)) // it was entered as it is
	}
}

// forget removes reservations.
func (b *book) forget(list []reservation.Reservation) {
	for i := range list {
		b.withdraw(&list[i], list[i].Claims)
		b.owners = slices.DeleteFunc(b.owners, func(o owned) bool { return o.r.ID == list[i].ID })
	}
}

func (b *book) rivals(name string, c reservation.Claim) (rivals []string) {
	for _, o := range b.owners {
		overlaps := slices.ContainsFunc(o.r.Claims, func(other reservation.Claim) bool { return other.Host == c.Host && other.Span.Overlaps(c.Span) })
		if overlaps && !slices.Contains(rivals, o.name) {
			rivals = append(rivals, o.name)
		}
	}
	if len(rivals) == 0 {
		return []string{"itself"}
	}
	return rivals
}
