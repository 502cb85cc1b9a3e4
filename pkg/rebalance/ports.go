// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// Records stores packing runs.
type Records interface {
	// AddPackingRun stores a new run. It fails with a Conflict fault while another run is active.
	AddPackingRun(ctx context.Context, r Run) error
	// ChangePackingRun replaces a run with the result of change, under the lease; the zero lease
	// means without a lease. change may be called more than once. It fails with a NotFound fault if
	// the run does not exist.
	ChangePackingRun(ctx context.Context, lease job.Lease, id string, change func(*Run) error) (Run, error)
}

// Archive reads packing runs.
type Archive interface {
	// PackingRun fails with a NotFound fault if the run does not exist.
	PackingRun(ctx context.Context, id string) (Run, error)
	// PackingRuns returns at most most runs, the latest first.
	PackingRuns(ctx context.Context, most int) ([]Run, error)
}

// Sight is the state of an instance in Nova at one moment.
type Sight struct {
	Host, Status, Task string
	Locked             bool
	// Migration is the last migration of the instance; the zero Migration means that it has none.
	Migration Migration
}

// Migration is a migration in Nova.
type Migration struct {
	ID, Status string
	Over       bool
}

// Migrator moves instances.
type Migrator interface {
	// Look fails with a NotFound fault if the instance does not exist.
	Look(ctx context.Context, instance string) (Sight, error)
	// Move orders Nova to live-migrate an instance to a host; the scheduler must accept the host.
	// After an Unavailable fault it is unknown whether Nova received the order. Move sends nothing
	// once ctx has ended.
	Move(ctx context.Context, instance, host string) error
	// Abort orders Nova to abort a live migration of the instance.
	Abort(ctx context.Context, instance string) error
}
