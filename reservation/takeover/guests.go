// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
)

// flavorPrefix begins the names of the flavors of Blazar's reservations of instances; the
// reservation's id follows (blazar/plugins/instances/instance_plugin.py, RESERVATION_PREFIX).
const flavorPrefix = "reservation:"

// Guests returns the reservations to which the servers belong, by the server's id: to reservations of
// instances by their flavor, and to active ones of hosts as servers of the owner's project on these
// hosts. Servers that belong to a reservation of Almanac already are left out.
func Guests(leases []reservation.LeaseRecord, servers []inventory.Instance) (guests map[string]string, findings []Finding) {
	var p planner
	byID, onHost := make(map[string]*reservation.Reservation), make(map[string]*reservation.Reservation)
	for i := range leases {
		for n := range leases[i].Reservations {
			r := &leases[i].Reservations[n]
			byID[r.ID] = r
			for _, c := range r.Claims {
				if r.Status == reservation.Active && r.Kind == reservation.Hosts {
					onHost[c.Host] = r
				}
			}
		}
	}
	guests = make(map[string]string)
	for _, s := range servers {
		of := byID[strings.TrimPrefix(s.Flavor.Name, flavorPrefix)]
		if of == nil {
			of = onHost[s.Host]
		}
		switch {
		case of == nil || s.ReservationID() != "":
		case of.BelongsTo(s.ProjectID):
			guests[s.ID] = of.ID
		default:
			p.find(Stranger, of.Membership.LeaseID, "",
				"server %s (%s) of project %s is on host %s of lease %s; Blazar would delete it at the end, Almanac treats it as [reservation] running_instances says",
				s.Name, s.ID, s.ProjectID, s.Host, of.Name)
		}
	}
	return guests, p.plan.Findings
}
