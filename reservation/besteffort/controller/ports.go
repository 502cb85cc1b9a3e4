// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Records stores the requests.
type Records interface {
	// OpenBestEffort returns the requests that are not over, in the order of the queue.
	OpenBestEffort(ctx context.Context) ([]state.Request, error)
	// SaveBestEffortVMs stores VMs, all or none. It stores nothing if another process has acquired
	// the lease.
	SaveBestEffortVMs(ctx context.Context, lease job.Lease, vms []state.VM) error
	// CloseBestEffort stores that a request is over. It stores nothing if another process has
	// acquired the lease.
	CloseBestEffort(ctx context.Context, lease job.Lease, id string, at span.Instant) error
}

// Servers reads servers as the service user.
type Servers interface {
	// Marked returns, by project, the servers with the mark of best-effort work and those with the
	// ids in known. It reads the projects that are keys of known.
	Marked(ctx context.Context, known map[string][]string) (map[string][]state.Server, error)
	// EndedByOwner reports whether a user of the project deleted a server that is gone; false also
	// if that is unknown.
	EndedByOwner(ctx context.Context, server, project string) (bool, error)
}

// Action is an action of Nova on a server.
type Action string

// The actions.
const (
	ActionLock    Action = "lock"
	ActionSuspend Action = "suspend"
	ActionResume  Action = "resume"
	ActionUnlock  Action = "unlock"
	ActionDelete  Action = "delete"
)

// ErrNotSent means that the request for a server was not sent to Nova: none will appear.
var ErrNotSent = errors.New("nova was not asked")

// ServerActions changes servers.
type ServerActions interface {
	// Create requests the VM's server, in the name of the request's owner. After an Unavailable
	// fault that is not ErrNotSent a server may still appear.
	Create(ctx context.Context, r *state.Request, vm *state.VM) (server string, err error)
	// Do starts an action as the service user, and does not wait for its end. If the server does
	// not exist, Do returns nil.
	Do(ctx context.Context, action Action, server, reason string) error
	// Remember stores that the server is preemptible, because it leaves its host for reservations.
	Remember(ctx context.Context, server string) error
}

// Allocations reads and changes the allocations of servers in Placement.
type Allocations interface {
	// Allocation returns the allocation of a server, and its generation; nil means that it has
	// none.
	Allocation(ctx context.Context, server string) (has *state.Held, generation int64, err error)
	// Remove removes the allocation, unless its generation has changed.
	Remove(ctx context.Context, server string, has *state.Held, generation int64) error
	// Restore restores the allocation of a server that has none now. It fails with a
	// *placing.ErrNoCapacity if others use the capacity.
	Restore(ctx context.Context, server string, had *state.Held) error
}

// Trusts ends the Keystone trusts with which servers are created.
type Trusts interface {
	// End deletes a trust. If it does not exist, End returns nil.
	End(ctx context.Context, trust string) error
}
