package controller

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Records are the stored requests.
type Records interface {
	// OpenBestEffort returns those that are not over, by their place in the queue.
	OpenBestEffort(ctx context.Context) ([]state.Request, error)
	// SaveBestEffortVMs stores VMs, all or none. It stores nothing where the lease has moved
	// on.
	SaveBestEffortVMs(ctx context.Context, lease job.Lease, vms []state.VM) error
	// CloseBestEffort stores that a request is over. It stores nothing where the lease has
	// moved on.
	CloseBestEffort(ctx context.Context, lease job.Lease, id string, at span.Instant) error
}

// Servers are seen as the service user.
type Servers interface {
	// Marked returns, by project, the servers with the mark of best-effort work and those
	// that known lists. The keys of known are the projects to look at.
	Marked(ctx context.Context, known map[string][]string) (map[string][]state.Server, error)
	// EndedByOwner reports whether a user of the project deleted a server that is gone; false
	// also where that is not known.
	EndedByOwner(ctx context.Context, server, project string) (bool, error)
}

// Action is what Nova does with a server.
type Action string

// The actions.
const (
	ActionLock    Action = "lock"
	ActionSuspend Action = "suspend"
	ActionResume  Action = "resume"
	ActionUnlock  Action = "unlock"
	ActionDelete  Action = "delete"
)

// ErrNotSent means that Nova was not asked for a server: none will appear.
var ErrNotSent = errors.New("Nova was not asked")

// ServerActions are calls that change servers.
type ServerActions interface {
	// Create asks for the VM's server, in the name of the request's owner. After an
	// Unavailable fault that is not ErrNotSent a server may still appear.
	Create(ctx context.Context, r *state.Request, vm *state.VM) (server string, err error)
	// Do starts an action as the service user, and does not wait for its end. A server that
	// does not exist is no error.
	Do(ctx context.Context, action Action, server, reason string) error
	// Remember stores that the server leaves its host for reservations.
	Remember(ctx context.Context, server string) error
}

// Allocations are those of servers in Placement.
type Allocations interface {
	// Allocation returns that of a server, and its generation; nil is none.
	Allocation(ctx context.Context, server string) (has *state.Held, generation int64, err error)
	// Remove removes it, unless its generation is another.
	Remove(ctx context.Context, server string, has *state.Held, generation int64) error
	// Restore allocates what a server had that has none now. It fails with a *placing.NoRoom
	// where others have it.
	Restore(ctx context.Context, server string, had *state.Held) error
}

// Trusts are the Keystone trusts with which servers are created.
type Trusts interface {
	// End deletes a trust. One that is gone already is no error.
	End(ctx context.Context, trust string) error
}
