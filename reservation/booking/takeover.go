// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// TakeOver is what Almanac takes over from another service, in one change.
type TakeOver struct {
	// Leases are new, with all their reservations.
	Leases []reservation.LeaseRecord
	Cause  reservation.Cause
	// Hosts are the hosts of the claims, sorted by name, with the versions on which it was decided
	// that the claims fit.
	Hosts []HostVersion
	// Usage is what the projects hold in addition, by project. Limits do not apply: all of it was
	// promised before.
	Usage map[string]Usage
	// Guests are the reservations of the instances that are in the cloud already, by the instance's
	// id.
	Guests map[string]string
	Pool   takeover.Pool
}

// NewTakeOver returns the change that stores the leases. known are the versions of all hosts that
// have one.
func NewTakeOver(leases []reservation.LeaseRecord, known []HostVersion) TakeOver {
	t := TakeOver{
		Leases: leases, Usage: make(map[string]Usage),
		Cause: reservation.Cause{Action: reservation.ActionCreate, Detail: "taken over from Blazar"},
	}
	versions := make(map[string]int64)
	for i := range leases {
		for _, r := range leases[i].Reservations {
			u := usageOf(reservation.Reservation{}, r)
			u.Raises = r.Status.Live()
			t.Usage[r.ProjectID] = t.Usage[r.ProjectID].and(u)
			for _, host := range hostsAnew(reservation.Reservation{}, r) {
				versions[host] = 0
			}
		}
	}
	for _, h := range known {
		if _, claimed := versions[h.Host]; claimed {
			versions[h.Host] = h.Version
		}
	}
	for _, host := range slices.Sorted(maps.Keys(versions)) {
		t.Hosts = append(t.Hosts, HostVersion{host, versions[host]})
	}
	return t
}
