// SPDX-License-Identifier: Apache-2.0

// Package controller switches hosts off and on (paper 004, section 004.1): it observes the hosts,
// asks package energy for a decision, stores the decision, and only then sends orders to the agents
// that switch hosts. One process at a time does so, under a lease. The lease's epoch accompanies
// every write and every order.
package controller

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Records stores the records of hosts.
type Records interface {
	// PowerRecords returns the records of all hosts that have one, by the name of the host.
	PowerRecords(ctx context.Context) (map[string]energy.Record, error)
	// ChangePower replaces the records of the named hosts with the result of change, which receives
	// the stored records; a host without one has the zero Record with its name. It adds the entries
	// to the audit in the same transaction, under the lease; the zero lease means without a lease.
	// If change removes a host from the map, its record is deleted. change may be called more than
	// once. If it fails, nothing is stored.
	ChangePower(ctx context.Context, lease job.Lease, hosts []string, change func(stored map[string]energy.Record) ([]energy.Entry, error)) error
}

// Settings stores the settings of operators.
type Settings interface {
	EnergySettings(ctx context.Context) (energy.Settings, error)
	// ChangeEnergySettings replaces the settings as Records.ChangePower does records.
	ChangeEnergySettings(ctx context.Context, lease job.Lease, change func(stored *energy.Settings) ([]energy.Entry, error)) error
}

// History is the audit and the past measurements of demand.
type History interface {
	// Audit returns the latest entries of a host, or of all hosts if host is empty, at most limit,
	// the latest first. Unless before is 0, it returns only entries before the one with that id.
	Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error)
	// Demand returns the measurements since an instant, sorted by time.
	Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error)
	// AddDemand adds a measurement, under the lease, and deletes the measurements before keep.
	AddDemand(ctx context.Context, lease job.Lease, d energy.Demand, keep span.Instant) error
}

// Agents sends orders to the power agents.
type Agents interface {
	// Access returns how each host can be switched, by the name of the host, and the hosts that two
	// agents announce, with the names of both agents.
	Access() (hosts map[string]energy.Access, twice map[string]string)
	// Order sends an order, or asks for the outcome of an order that was sent before. After an
	// error it is unknown whether the agent received the order.
	Order(ctx context.Context, o energy.Order) (energy.Outcome, error)
	// Read reads the machines of the hosts. The Reading of a host whose agent does not
	// answer has a Problem.
	Read(ctx context.Context, hosts []string) map[string]energy.Reading
	// Agents returns all known agents, including lost ones.
	Agents() []energy.Agent
}

// Service is the nova-compute of a host.
type Service struct {
	Up, Disabled bool
	Reason       string       // why the service is disabled
	Reported     span.Instant // when it last reported or was changed, by Nova's clock (updated_at)
}

// ComputeServices reads the nova-compute services of the hosts, and closes and opens hosts for instances.
type ComputeServices interface {
	// Services returns the nova-compute services, by the name of the host.
	Services(ctx context.Context) (map[string]Service, error)
	// Disable closes the host to new instances, with a reason that begins with ReasonPrefix and
	// contains the operation. Enable opens it again after that operation; "" means after any
	// operation of the controller. If the host is closed for another reason, both change nothing
	// and fail with a Conflict fault that contains the reason.
	Disable(ctx context.Context, host, reason string) error
	Enable(ctx context.Context, host, operation string) error
}

// Vacancy checks whether hosts are empty.
type Vacancy interface {
	// Occupied reads from Nova and Placement, without a cache, what is on the host or on its way to
	// it or from it, as a sentence; "" if nothing is. It fails if that cannot be determined.
	Occupied(ctx context.Context, host string) (string, error)
}

// Promises is the reservations that have claims on hosts.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
}

// Hosts is the inventory. Untrusted returns why it is untrusted; "" if it is trusted.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	Untrusted(now span.Instant) string
}
