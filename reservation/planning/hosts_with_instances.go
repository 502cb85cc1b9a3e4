// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// occupied reports whether instances are likely to be on the host at start. Within the lead time
// before the start, all instances count. Before that, only those count that nothing will remove:
// instances of ended reservations, and instances that are not preemptible unless the cloud migrates
// them. Instances on a host that is reserved now are assumed to leave with that reservation.
func (s refusing) occupied(number int, start span.Instant) bool {
	if start <= s.view.Now.Add(s.view.LeadTime) {
		return s.view.Hosts.Host(number).InstanceCount > 0
	}
	c := s.view.Hosts.occupants[number]
	return (c.bound || c.other && !s.view.Migrates) && s.unclaimed().Has(number)
}

// unclaimed returns the hosts that no reservation has now.
func (s refusing) unclaimed() hostset.Set {
	if s.idle == nil {
		idle := s.view.Calendar.Free(span.New(s.view.Now, 1), s.view.all())
		s.idle = &idle
	}
	return *s.idle
}
