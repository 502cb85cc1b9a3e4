// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// UsageRequest is the body of a request to the usage service
// (blazar/enforcement/filters/external_service_filter.py). CurrentLease is the lease before a change;
// nil in requests about anything else.
type UsageRequest struct {
	Context      UsageContext `json:"context"`
	CurrentLease *UsageLease  `json:"current_lease,omitempty"`
	Lease        UsageLease   `json:"lease"`
}

// UsageContext is whose lease a request is about, and in which cloud.
type UsageContext struct {
	UserID     string `json:"user_id"`
	ProjectID  string `json:"project_id"`
	AuthURL    string `json:"auth_url"`
	RegionName string `json:"region_name"`
}

// UsageLease is a lease for the usage service. Its times have neither a zone nor a fraction.
type UsageLease struct {
	Lease
	StartDate     string             `json:"start_date"`
	EndDate       string             `json:"end_date"`
	BeforeEndDate *string            `json:"before_end_date"`
	Reservations  []UsageReservation `json:"reservations"`
	// ResourceRequests are the amounts of the whole lease, by Placement's resource class; without
	// those that are 0. Coral Credits counts them.
	ResourceRequests map[string]int64 `json:"resource_requests"`
}

// UsageReservation is one reservation of a UsageLease, with its hosts. Coral Credits refuses an
// affinity that is no text, and an empty query of instances, so both may be absent.
type UsageReservation struct {
	Reservation
	Affinity           string           `json:"affinity,omitempty"` // True or False
	ResourceProperties *string          `json:"resource_properties,omitempty"`
	Allocations        []map[string]any `json:"allocations"`
}

// UsageOf returns a lease at now for the usage service.
func UsageOf(l *reservation.LeaseRecord, hosts *inventory.Snapshot, now span.Instant) UsageLease {
	usage := UsageLease{
		Lease: LeaseOf(l, now), StartDate: usageTime(l.Span.Start), EndDate: usageTime(l.Span.End),
		Reservations: make([]UsageReservation, len(l.Reservations)), ResourceRequests: ResourceRequests(l, hosts),
	}
	if l.BeforeEnd > 0 {
		usage.BeforeEndDate = new(usageTime(l.BeforeEnd))
	}
	for i := range l.Reservations {
		r := &l.Reservations[i]
		u := UsageReservation{Reservation: usage.Lease.Reservations[i], Allocations: []map[string]any{}}
		if written := u.Reservation.ResourceProperties; r.Kind == reservation.Hosts || written != nil && *written != "" {
			u.ResourceProperties = written
		}
		if u.instanceFields != nil && u.instanceFields.Affinity != nil {
			u.Affinity = "False"
			if *u.instanceFields.Affinity {
				u.Affinity = "True"
			}
		}
		for _, h := range lastHosts(r, hosts) {
			u.Allocations = append(u.Allocations, Host(h, func(string) bool { return true }))
		}
		for _, a := range r.Addresses {
			u.Allocations = append(u.Allocations, map[string]any{"floating_network_id": a.Network, "floating_ip_address": a.Address})
		}
		usage.Reservations[i] = u
	}
	return usage
}

// ResourceRequests returns the amounts of a lease, by Placement's resource class, without those that
// are 0: the capacity of its hosts, and the size of its instances.
func ResourceRequests(l *reservation.LeaseRecord, hosts *inventory.Snapshot) map[string]int64 {
	var sum resource.Vector
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if r.Kind == reservation.Instances {
			sum = sum.Add(r.Resources.Scale(int64(r.Quantity)))
			continue
		}
		for _, h := range lastHosts(r, hosts) {
			sum = sum.Add(h.Capacity)
		}
	}
	amounts := map[string]int64{}
	for class, amount := range sum.Custom {
		if amount != 0 {
			amounts[class] = amount
		}
	}
	for class, amount := range map[string]int64{"VCPU": sum.VCPUs, "MEMORY_MB": sum.MemoryMB, "DISK_GB": sum.DiskGB} {
		if amount != 0 {
			amounts[class] = amount
		}
	}
	return amounts
}

// lastHosts returns the known hosts that a reservation has until its end, sorted by name; without
// those that others have replaced.
func lastHosts(r *reservation.Reservation, hosts *inventory.Snapshot) (list []*inventory.Host) {
	var names []string
	for _, c := range r.Claims {
		if c.Span.End == r.Span.End {
			names = append(names, c.Host)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if i, known := hosts.Index(name); known {
			list = append(list, hosts.Host(i))
		}
	}
	return list
}

// usageTime returns a time as Python's isoformat writes it.
func usageTime(at span.Instant) string { return at.Time().Format("2006-01-02T15:04:05") }
