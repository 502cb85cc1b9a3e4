// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// HostAllocations are the allocations of a host, sorted by start.
type HostAllocations struct {
	ResourceID   string       `json:"resource_id"`
	Reservations []Allocation `json:"reservations"`
}

// Allocation is the time for which a reservation has a host. The ids are empty for callers who must
// not learn whose it is.
type Allocation struct {
	ID        string `json:"id"` // of the reservation
	LeaseID   string `json:"lease_id"`
	StartDate string `json:"start_date"`
	EndDate   string `json:"end_date"`
}

// Allocations returns the allocations of each host that end after an instant, also of hosts without
// any. shown reports whether the caller learns whose an allocation is.
func Allocations(
	hosts []*inventory.Host, reservations []reservation.Reservation, after span.Instant, shown func(*reservation.Reservation) bool,
) []HostAllocations {
	list, places := make([]HostAllocations, len(hosts)), make(map[string]int, len(hosts))
	for i, h := range hosts {
		list[i] = HostAllocations{ResourceID: HostID(h), Reservations: []Allocation{}}
		places[h.Name] = i
	}
	for i := range reservations {
		r := &reservations[i]
		var a Allocation
		if shown(r) && !r.Maintenance { // which is no lease
			a.ID, a.LeaseID = r.ID, cmp.Or(r.Membership.LeaseID, r.ID)
		}
		for _, c := range r.Claims {
			place, listed := places[c.Host]
			if !listed || c.Span.End <= after {
				continue
			}
			a.StartDate, a.EndDate = Time(c.Span.Start), Time(c.Span.End)
			list[place].Reservations = append(list[place].Reservations, a)
		}
	}
	for i := range list {
		slices.SortStableFunc(list[i].Reservations, func(a, b Allocation) int {
			return cmp.Or(cmp.Compare(a.StartDate, b.StartDate), cmp.Compare(a.ID, b.ID))
		})
	}
	return list
}
