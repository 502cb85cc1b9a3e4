// SPDX-License-Identifier: Apache-2.0

package address

import "slices"

// Floating is a floating IP that exists in the cloud, or should.
type Floating struct {
	ID      string // empty for one that does not exist yet
	Network string
	Address string
	Project string
	// Port is the port to which it is attached; empty if it is free.
	Port string
	// Reservation is the reservation for which it was created; empty if it was created for none.
	Reservation string
	// Tagged is true if it has the tags with which clients find the floating IPs of a reservation.
	Tagged bool
}

// Holder is a reservation in view of the floating IPs of the cloud.
type Holder struct {
	ID      string
	Project string
	Claims  []Claim
}

// Start returns the floating IPs to create, or to tag if they have an id, so that the reservation has
// all that it claims. obstacles are those that exist for anybody else.
func Start(h Holder, there []Floating) (create, obstacles []Floating) {
	for _, c := range h.Claims {
		i := slices.IndexFunc(there, func(f Floating) bool { return f.Network == c.Network && f.Address == c.Address })
		switch {
		case i < 0:
			create = append(create, Floating{Network: c.Network, Address: c.Address, Project: h.Project, Reservation: h.ID})
		case there[i].Reservation != h.ID || there[i].Project != h.Project:
			obstacles = append(obstacles, there[i])
		case !there[i].Tagged:
			create = append(create, there[i])
		}
	}
	return create, obstacles
}

// End returns the floating IPs to delete at the end of a reservation, of those that exist and belong to
// no other reservation. A floating IP of the same project at a claimed address belongs to the reservation
// even without its tags, since nobody else may have the address.
func End(h Holder, there []Floating) (remove []Floating) {
	for _, f := range there {
		claimed := slices.ContainsFunc(h.Claims, func(c Claim) bool { return f.Network == c.Network && f.Address == c.Address })
		if f.Reservation == h.ID || claimed && f.Project == h.Project {
			remove = append(remove, f)
		}
	}
	return remove
}
