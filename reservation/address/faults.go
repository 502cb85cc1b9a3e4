// SPDX-License-Identifier: Apache-2.0

package address

import "github.com/almanac-cloud/almanac/pkg/fault"

// NotEnrolled returns the error for an id that no address of the pool has, with Blazar's text.
func NotEnrolled(id string) error {
	return fault.New(fault.NotFound, "Floating IP %s not found.", shortened(id))
}

// StillClaimed returns the error for the removal of an address that a live reservation claims, with
// Blazar's text.
func StillClaimed(id string) error {
	return fault.New(fault.Conflict, "Can't delete floating IP %s. Floating IP id %s is allocated by reservations.", id, id)
}

// AlreadyEnrolled returns the error for an address that the pool has already.
func AlreadyEnrolled(address string) error {
	return fault.New(fault.Conflict, "Floating IP %s can be reserved already", address)
}

// Full returns the error that as many floating IPs of the network can be reserved as a network may have.
func Full(network string) error {
	return fault.New(fault.Conflict, "Network %s has %d floating IPs that can be reserved, the most that a network may have", network, MostEnrolled)
}
