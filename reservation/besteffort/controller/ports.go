package controller

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Planner decides what is done now; besteffort.Rules is one.
type Planner interface {
	Plan(s besteffort.Situation) besteffort.Plan
}

// Records are the requests that are stored.
type Records interface {
	// OpenBestEffort gives those that are not over, by their place in the queue.
	OpenBestEffort(ctx context.Context) ([]Request, error)
	// SaveBestEffortVMs stores VMs, all or none. It stores nothing where the lease has moved
	// on.
	SaveBestEffortVMs(ctx context.Context, lease job.Lease, vms []VM) error
	// CloseBestEffort stores that a request is over. It stores nothing where the lease has
	// moved on.
	CloseBestEffort(ctx context.Context, lease job.Lease, id string, at span.Instant) error
}

// Server is a server that was made for best-effort work, by its mark.
type Server struct {
	ID, Host, Status, Task string
	// VM and Attempt are what its mark says. Its owner can write there what he likes.
	VM      string
	Attempt int
	Locked  bool
	Created span.Instant
	// UserID is who made it, Flavor the name of its flavor, and Image the id of its image.
	UserID, Flavor, Image string
	// Fault is what Nova says went wrong; empty where nothing did.
	Fault string
}

// Servers are seen as the service user.
type Servers interface {
	// Marked gives, by project, the servers that bear the mark of best-effort work, and
	// those that are known to be of it. known has every project that is meant.
	Marked(ctx context.Context, known map[string][]string) (map[string][]Server, error)
	// EndedByOwner says whether a server that is gone was deleted by somebody of its project;
	// false also where that cannot be told.
	EndedByOwner(ctx context.Context, server, project string) (bool, error)
}

// Order is what is done with a server.
type Order string

// The orders.
const (
	Lock    Order = "lock"
	Suspend Order = "suspend"
	Resume  Order = "resume"
	Unlock  Order = "unlock"
	Delete  Order = "delete"
)

// ErrUnasked says that Nova was not asked for a server: there will be none.
var ErrUnasked = errors.New("Nova was not asked")

// Orders are what Nova is told.
type Orders interface {
	// Create asks for the VM's server, in the name of the request's owner. After an
	// Unavailable fault that is not ErrUnasked nobody knows whether there will be one.
	Create(ctx context.Context, r *Request, vm *VM) (server string, err error)
	// Do gives an order as the service user, and does not wait until it is followed. That
	// there is no such server is no error.
	Do(ctx context.Context, order Order, server, reason string) error
	// Remember has it known that the server makes room for reservations.
	Remember(ctx context.Context, server string) error
}

// Rooms are what servers have in Placement.
type Rooms interface {
	// Held gives what the server has, and the generation of that; nil is nothing.
	Held(ctx context.Context, server string) (has *Held, generation int64, err error)
	// Take takes from the server what it has, unless that is of another generation.
	Take(ctx context.Context, server string, has *Held, generation int64) error
	// Give gives a server that has nothing what it had. It fails with a *placing.ErrNoCapacity
	// where others have it.
	Give(ctx context.Context, server string, had *Held) error
}

// Trusts let servers be made in the name of their owners.
type Trusts interface {
	// End deletes a trust. That it is gone is no error.
	End(ctx context.Context, trust string) error
}

// Promises are the live reservations.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
}

// Ground is where there is room.
type Ground struct {
	Snapshot func() *inventory.Snapshot
	Promises Promises
	// Clear is how many seconds before a reservation starts its hosts are to be left.
	Clear int64
}
