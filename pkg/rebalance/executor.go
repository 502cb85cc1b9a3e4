// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ExecutorOptions are the dependencies and settings of an Executor. Numbers of time are in seconds.
type ExecutorOptions struct {
	Records Records
	Archive Archive
	Leases  job.Leases
	Cloud   Migrator
	// Situation reads the cloud, without a cache.
	Situation func(ctx context.Context) (Situation, error)
	// Untrusted returns why the inventory is untrusted; empty if it is trusted. No move begins
	// while it is untrusted.
	Untrusted func() string

	// Timeout is how many seconds a move may take, and how many more its abortion may take.
	Timeout int64
	// MostFailed is the number of failed moves after which a run ends; 0 means no limit.
	MostFailed int

	Every time.Duration
	Now   func() span.Instant
	Log   *slog.Logger
}

// Executor carries out packing runs, one move at a time, while it has the lease. It stores each
// action before it sends the order to Nova, so that a replica that takes over continues from there.
type Executor struct {
	ExecutorOptions
	wake chan struct{}
	made map[State]*atomic.Int64
}

// NewExecutor returns an executor. Its Job does the work.
func NewExecutor(o ExecutorOptions) *Executor {
	return &Executor{ExecutorOptions: o, wake: make(chan struct{}, 1), made: map[State]*atomic.Int64{MoveDone: {}, MoveSkipped: {}, MoveFailed: {}}}
}

// Made returns the number of moves that this process has brought to the state.
func (c *Executor) Made(state State) int64 { return c.made[state].Load() }

const (
	leaseName = "packing"
	leaseTTL  = time.Minute
	// tellTime limits the time from the storing of a move's begin until the call to Nova has ended.
	tellTime = 45 * time.Second
	// heard is the number of seconds after the begin of a move after which Nova either has received
	// the call or never will.
	heard = int64(leaseTTL / time.Second)
	// mostTold is the largest number of orders to Nova for one move.
	mostTold  = 3
	mostSteps = 100
)

// Wake starts the next step at once.
func (c *Executor) Wake() { job.Poke(c.wake) }

// Job returns the executor's periodic work.
func (c *Executor) Job() job.Job {
	return job.Job{Name: "packing", Every: c.Every, Wake: c.wake, Step: c.Step}
}

// Step does everything that is possible now; it does not wait for Nova to finish a move.
func (c *Executor) Step(ctx context.Context) error {
	if r, err := c.open(ctx); r == nil {
		return err
	}
	_, err := job.Hold(ctx, c.Leases, leaseName, leaseTTL, func(ctx context.Context, held *job.Held) error {
		for range mostSteps {
			r, err := c.open(ctx)
			if r == nil {
				return err
			}
			if more, err := c.advance(ctx, held, *r); err != nil || !more {
				return err
			}
			if err := held.Ensure(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// advance makes one transition of the run; more is true if another one is possible at once.
func (c *Executor) advance(ctx context.Context, held *job.Held, r Run) (more bool, err error) {
	i, left := r.next()
	switch {
	case left && r.Progress[i].State != MoveWaiting:
		return c.follow(ctx, held, r, i)
	case r.Status == RunStopping:
		return false, c.end(ctx, held, r, RunStopped, r.Reason)
	case !left:
		return false, c.end(ctx, held, r, RunDone, done(&r))
	}
	if failed := r.Count(MoveFailed); c.MostFailed > 0 && failed >= c.MostFailed {
		return false, c.end(ctx, held, r, RunFailed, fmt.Sprintf("%d moves have failed", failed))
	}
	s, err := c.observe(ctx)
	if err != nil {
		return false, fmt.Errorf("read the cloud before the next move: %w", err)
	}
	if untrusted := c.Untrusted(); untrusted != "" {
		c.Log.WarnContext(ctx, "nothing is moved while the inventory is untrusted", "run", r.ID, "reason", untrusted)
		return false, nil
	}
	verdict := s.Judge(&r.Plan, i, r.Floor())
	switch {
	case verdict.Skip != "":
		return true, c.note(ctx, held, r, i, MoveSkipped, verdict.Skip)
	case verdict.End != "":
		return false, c.end(ctx, held, r, RunDone, verdict.End)
	}
	return true, c.begin(ctx, held, r, i)
}
