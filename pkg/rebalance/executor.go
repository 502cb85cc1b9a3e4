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

// ExecutorOptions are the parts and settings of an Executor. Times are in seconds unless they
// are durations.
type ExecutorOptions struct {
	Records Records
	Archive Archive
	Leases  job.Leases
	Cloud   Cloud
	// Situation reads the cloud, without a cache.
	Situation func(ctx context.Context) (Situation, error)
	// Untrusted returns why the inventory is untrusted; empty if it is trusted. No move begins
	// while it is untrusted.
	Untrusted func() string

	// Timeout is the time allowed for a move, and again for aborting it.
	Timeout int64
	// MostFailed is the number of failed moves that ends a run; 0 is without limit.
	MostFailed int

	Every time.Duration
	Now   func() span.Instant
	Log   *slog.Logger
}

// Executor carries out runs, one move at a time, while it holds the lease. It stores each
// action before it sends the order to Nova, so that a replica that takes over continues
// from there.
type Executor struct {
	ExecutorOptions
	wake chan struct{}
	made map[State]*atomic.Int64
}

// NewExecutor returns an executor. Its Job does the work.
func NewExecutor(o ExecutorOptions) *Executor {
	return &Executor{ExecutorOptions: o, wake: make(chan struct{}, 1), made: map[State]*atomic.Int64{MoveDone: {}, MoveSkipped: {}, MoveFailed: {}}}
}

// Made returns the number of moves that reached the state in this process.
func (c *Executor) Made(state State) int64 { return c.made[state].Load() }

const (
	leaseName = "packing"
	leaseTTL  = time.Minute
	// tellTime bounds the time from storing the begin of a move to the end of the call to
	// Nova.
	tellTime = 45 * time.Second
	// heard is the number of seconds after the begin of a move when Nova has received the
	// call or never will.
	heard = int64(leaseTTL / time.Second)
	// mostTold is the number of orders to Nova for a move that does not begin.
	mostTold  = 3
	mostSteps = 100
)

// Wake starts the next step at once.
func (c *Executor) Wake() { job.Poke(c.wake) }

// Job returns the executor's periodic work.
func (c *Executor) Job() job.Job {
	return job.Job{Name: "packing", Every: c.Every, Wake: c.wake, Step: c.Step}
}

// Step does what is possible now, without waiting for Nova.
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

// advance makes one transition; more reports whether the next one is possible at once.
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
