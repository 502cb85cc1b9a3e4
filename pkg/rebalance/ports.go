package rebalance

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// Records keep runs.
type Records interface {
	// AddPackingRun stores a new run. It fails with a Conflict fault while another is not over.
	AddPackingRun(ctx context.Context, r Run) error
	// ChangePackingRun replaces a run by what change makes of it, under the lease; the zero
	// lease guards nothing. change may be called again. It fails with a NotFound fault where
	// there is no such run.
	ChangePackingRun(ctx context.Context, lease job.Lease, id string, change func(*Run) error) (Run, error)
}

// Archive has the runs.
type Archive interface {
	// PackingRun fails with a NotFound fault where there is no such run.
	PackingRun(ctx context.Context, id string) (Run, error)
	// PackingRuns gives the latest, the last one first.
	PackingRuns(ctx context.Context, most int) ([]Run, error)
}

// Sight is what Nova says of an instance at one moment.
type Sight struct {
	Host, Status, Task string
	Locked             bool
	// Migration is the last one that it knows; the zero one where it knows none.
	Migration Migration
}

// Migration is one of Nova's.
type Migration struct {
	ID, Status string
	Over       bool
}

// Cloud moves instances.
type Cloud interface {
	// Look fails with a NotFound fault where there is no such instance.
	Look(ctx context.Context, instance string) (Sight, error)
	// Move has Nova begin to live-migrate an instance to a host, which its scheduler has to
	// accept. An Unavailable fault means that nobody knows whether Nova was told. Nova is told
	// nothing once ctx has ended.
	Move(ctx context.Context, instance, host string) error
	// Abort has Nova give up a live migration of the instance.
	Abort(ctx context.Context, instance string) error
}
