// Package controller carries power plans out (paper 004, section 004.1): it reads what is,
// asks package energy, stores what will be done, and only then gives orders to the agents
// that can switch hosts. One process at a time does so, under a lease whose epoch goes with
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

// Records keep what the controller must not forget.
type Records interface {
	// PowerRecords gives those of all hosts that have one, by host.
	PowerRecords(ctx context.Context) (map[string]energy.Record, error)
	// ChangePower replaces the records of the named hosts by what change makes of those
	// that are stored (of a host without one: the zero Record with its name), and adds
	// entries to the audit, in one transaction, under the lease; the zero lease guards
	// nothing. A host that change takes out of the map loses its record. change may be called again. Where it fails nothing is stored.
	ChangePower(ctx context.Context, lease job.Lease, hosts []string, change func(stored map[string]energy.Record) ([]energy.Entry, error)) error
}

// Settings keep what operators have set.
type Settings interface {
	EnergySettings(ctx context.Context) (energy.Settings, error)
	// ChangeEnergySettings as Records.ChangePower.
	ChangeEnergySettings(ctx context.Context, lease job.Lease, change func(stored *energy.Settings) ([]energy.Entry, error)) error
}

// History is what was.
type History interface {
	// Audit gives the last entries of a host (empty: of all), the latest first, those
	// before the entry with the id before (0: from the last on); at most limit.
	Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error)
	// Demand gives the measurements from an instant on, in the order of time.
	Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error)
	// AddDemand adds one, under the lease, and forgets those before keep.
	AddDemand(ctx context.Context, lease job.Lease, d energy.Demand, keep span.Instant) error
}

// Agents switch machines.
type Agents interface {
	// Access gives how each host can be switched, by host, and the hosts that two agents
	// say they switch, with both names.
	Access() (hosts map[string]energy.Access, twice map[string]string)
	// Order gives an order, or asks what has become of it when it was given before. An
	// error means that nobody knows whether it arrived.
	Order(ctx context.Context, o energy.Order) (energy.Outcome, error)
	// Read asks for the hosts' machines. A host whose agent does not answer has a Problem.
	Read(ctx context.Context, hosts []string) map[string]energy.Reading
	// Agents gives those that there are, the lost ones too.
	Agents() []energy.Agent
}

// Service is the nova-compute of a host.
type Service struct {
	Up, Disabled bool
	Reason       string       // why it is disabled
	Reported     span.Instant // when it last reported or was changed, by Nova's clock (updated_at)
}

// Cloud is the cloud on the hosts.
type Cloud interface {
	// Services gives those of all hosts, by host.
	Services(ctx context.Context) (map[string]Service, error)
	// Disable closes the host to new instances, for reason, which begins with ReasonPrefix
	// and the operation. Enable opens it again after the operation; "" is any of ours. They
	// do nothing where its reason is another than these by now: then they fail with a
	// Conflict fault that says so.
	Disable(ctx context.Context, host, reason string) error
	Enable(ctx context.Context, host, operation string) error
}

// Vacancy says whether somebody is on a host.
type Vacancy interface {
	// Occupied asks Nova and Placement freshly, and says what is on the host, or on its
	// way to it or from it, in a sentence; empty where nothing is. An error is doubt.
	Occupied(ctx context.Context, host string) (string, error)
}

// Promises are the reservations that hold hosts.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
}

// Hosts are those of the inventory.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	Untrusted(now span.Instant) string
}
