// Package controller carries out power plans (paper 004, section 004.1): it observes the
// hosts, asks package energy for a decision, stores the decision, and only then sends
// orders to the agents that switch hosts. One process at a time does so, under a lease. The
// lease's epoch goes with every write and every order.
package controller

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Records are the stored records of hosts.
type Records interface {
	// PowerRecords returns the records of all hosts that have one, by host.
	PowerRecords(ctx context.Context) (map[string]energy.Record, error)
	// ChangePower replaces the records of the named hosts with the result of change, which
	// receives the stored records; a host without one has the zero Record with its name. It
	// adds the entries to the audit in the same transaction, under the lease; the zero
	// lease guards nothing. A host that change removes from the map loses its record.
	// change may be called more than once. If it fails, nothing is stored.
	ChangePower(ctx context.Context, lease job.Lease, hosts []string, change func(stored map[string]energy.Record) ([]energy.Entry, error)) error
}

// Settings are the stored settings of operators.
type Settings interface {
	EnergySettings(ctx context.Context) (energy.Settings, error)
	// ChangeEnergySettings replaces the settings as Records.ChangePower does records.
	ChangeEnergySettings(ctx context.Context, lease job.Lease, change func(stored *energy.Settings) ([]energy.Entry, error)) error
}

// History is the audit and the past demand.
type History interface {
	// Audit returns the latest entries of a host (empty: of all hosts), the latest first,
	// at most limit. If before is not 0, it returns only entries before the one with that
	// id.
	Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error)
	// Demand returns the measurements from an instant on, in the order of time.
	Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error)
	// AddDemand adds a measurement, under the lease, and deletes those before keep.
	AddDemand(ctx context.Context, lease job.Lease, d energy.Demand, keep span.Instant) error
}

// Agents are the power agents.
type Agents interface {
	// Access returns how each host can be switched, by host, and the hosts that two agents
	// announce, with the names of both.
	Access() (hosts map[string]energy.Access, twice map[string]string)
	// Order sends an order, or asks for the outcome of an order that was sent before. After
	// an error it is unknown whether the order arrived.
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

// Cloud is the compute service of the hosts.
type Cloud interface {
	// Services returns the services of all hosts, by host.
	Services(ctx context.Context) (map[string]Service, error)
	// Disable closes the host to new instances, for a reason that begins with ReasonPrefix
	// and the operation. Enable opens it again after the operation; "" is any operation of
	// the controller. If the host is closed for another reason, both change nothing and
	// fail with a Conflict fault that names the reason.
	Disable(ctx context.Context, host, reason string) error
	Enable(ctx context.Context, host, operation string) error
}

// Vacancy checks whether hosts are empty.
type Vacancy interface {
	// Occupied asks Nova and Placement, without a cache, and returns what is on the host,
	// or on its way to it or from it, as a sentence; empty if nothing is. It fails if
	// that is unknown.
	Occupied(ctx context.Context, host string) (string, error)
}

// Promises are the reservations that hold claims on hosts.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
}

// Hosts is the inventory. Untrusted returns why it is untrusted; empty if it is not.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	Untrusted(now span.Instant) string
}
