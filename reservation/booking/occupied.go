package booking

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// company is who is on a host.
type company struct {
	// bound guests were made in a reservation; other guests are neither that nor
	// preemptible. A source that only counts its guests has others alone.
	bound, other bool
}

func companyOf(h *inventory.Host) company {
	c := company{other: h.Instances == nil && h.InstanceCount > 0}
	for i := range h.Instances {
		g := &h.Instances[i]
		bound := g.ReservationID() != ""
		c.bound = c.bound || bound
		c.other = c.other || !bound && !g.Preemptible
	}
	return c
}

// occupied reports whether guests are likely to be on the host at start. Within the lead
// time all guests count. Before that those count which nobody takes away: guests of a
// reservation that is over, and those that are not preemptible unless the cloud migrates
// them. Guests on a host that a reservation has now are taken for that reservation's.
func (s *search) occupied(number int, start span.Instant) bool {
	if start <= s.view.Now.Add(s.view.LeadTime) {
		return s.view.roster.host(number).InstanceCount > 0
	}
	c := s.view.roster.company[number]
	return (c.bound || c.other && !s.view.Migrates) && s.unclaimed().Has(number)
}

// unclaimed returns the hosts that no reservation has now.
func (s *search) unclaimed() hostset.Set {
	if s.idle == nil {
		idle := s.view.Calendar.Free(span.New(s.view.Now, 1), s.all())
		s.idle = &idle
	}
	return *s.idle
}

func (s *search) all() hostset.Set {
	all := hostset.New(s.view.Calendar.Hosts())
	for number := range s.view.roster.names {
		all.Add(number)
	}
	return all
}
