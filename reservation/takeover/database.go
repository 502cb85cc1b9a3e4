// SPDX-License-Identifier: Apache-2.0

// Package takeover plans how Almanac takes over a running OpenStack Blazar: which leases, claims and
// hosts of Blazar's database become which of Almanac's, and what cannot be taken over. It is pure;
// pkg/app reads both databases and the cloud, and stores the plan.
package takeover

import "github.com/almanac-cloud/almanac/pkg/span"

// Database is what is read of Blazar's database (blazar/db/sqlalchemy/models.py), without rows that
// are marked as deleted. Texts that are null there are empty, times are 0.
type Database struct {
	Leases       []Lease
	Reservations []Reservation
	Events       []Event
	Allocations  []Allocation
	Hosts        []Host
	Capabilities []Capability
	// FloatingIPs are the addresses of Blazar's pool.
	FloatingIPs []string
}

// Lease is a row of leases.
type Lease struct {
	ID, Name, UserID, ProjectID string
	Start, End                  span.Instant
	Status                      string // as in blazar/status.py
	Created, Updated            span.Instant
}

// Reservation is a row of reservations with the one of its type.
type Reservation struct {
	ID, LeaseID      string
	Type             string // such as physical:host
	Status           string
	MissingResources bool
	// Hosts and Instances are nil for a reservation of another type.
	Hosts     *HostTerms
	Instances *InstanceTerms
}

// HostTerms is a row of computehost_reservations.
type HostTerms struct {
	CountRange                               string // such as "1-3"
	HypervisorProperties, ResourceProperties string
	BeforeEnd                                string
}

// InstanceTerms is a row of instance_reservations.
type InstanceTerms struct {
	VCPUs, MemoryMB, DiskGB int64
	Amount                  int
	Affinity                *bool
	// ResourceProperties is a query, or for type flavor:instance the flavor as JSON.
	ResourceProperties string
	ServerGroup        string
}

// Event is a row of events.
type Event struct {
	LeaseID, Type string
	Time          span.Instant
	Status        string
}

// Allocation is a row of computehost_allocations: a host of a reservation of hosts, or room for one
// instance of a reservation of instances.
type Allocation struct {
	ReservationID, HostID string
}

// Host is a row of computehosts.
type Host struct {
	ID                      string // a number
	Hypervisor, Service     string // names of the compute node and of its nova-compute
	VCPUs, MemoryMB, DiskGB int64
	Created                 span.Instant
}

// Capability is a value of a property of a host, with what resource_properties has of it.
type Capability struct {
	HostID, Property, Value string
	Private                 bool
}

// The types of reservations, in blazar/plugins.
const (
	typeHosts     = "physical:host"
	typeInstances = "virtual:instance"
	typeFlavor    = "flavor:instance"
)

// The statuses of leases and events, in blazar/status.py. Blazar is in the middle of something while
// a lease has another one than these.
const (
	leasePending    = "PENDING"
	leaseActive     = "ACTIVE"
	leaseTerminated = "TERMINATED"
	leaseError      = "ERROR"
	leaseCreating   = "CREATING"
	leaseDeleting   = "DELETING"

	eventDone  = "DONE"
	eventError = "ERROR"
)

// The types of the events of a lease.
const (
	startLease = "start_lease"
	beforeEnd  = "before_end_lease"
	endLease   = "end_lease"
)
