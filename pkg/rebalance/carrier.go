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

// CarrierOptions are what a Carrier is made of. Times are seconds where they are not
// durations.
type CarrierOptions struct {
	Records Records
	Archive Archive
	Leases  job.Leases
	Cloud   Cloud
	// Situation reads the cloud anew.
	Situation func(ctx context.Context) (Situation, error)
	// Doubt says why what was read is not to be believed; then nothing is begun.
	Doubt func() string

	// Timeout is how long a move may take, and its abortion.
	Timeout int64
	// MostFailed is after how many moves that fail a run is given up; 0 is any number.
	MostFailed int

	Every time.Duration
	Now   func() span.Instant
	Log   *slog.Logger
}

// Carrier carries runs out, one move at a time, where it holds the lease. What it is about
// to do is stored before Nova is told: another that takes over goes on where it was.
type Carrier struct {
	CarrierOptions
	wake chan struct{}
	made map[State]*atomic.Int64
}

// NewCarrier gives a carrier. Job lets it work.
func NewCarrier(o CarrierOptions) *Carrier {
	return &Carrier{CarrierOptions: o, wake: make(chan struct{}, 1), made: map[State]*atomic.Int64{Moved: {}, Skipped: {}, Undone: {}}}
}

// Made is how many moves this process has seen come to the state.
func (c *Carrier) Made(state State) int64 { return c.made[state].Load() }

const (
	leaseName = "packing"
	leaseTTL  = time.Minute
	// tellTime bounds the time from storing that a move begins to the end of the call to Nova.
	tellTime = 45 * time.Second
	// heard is how many seconds after a move began Nova has received the call, or never will.
	heard = int64(leaseTTL / time.Second)
	// mostTold is how often Nova is told to move an instance that does not begin to move.
	mostTold = 3
	// mostSteps bounds one step of the job.
	mostSteps = 100
)

// Wake lets the next step begin at once.
func (c *Carrier) Wake() { job.Poke(c.wake) }

// Job is the carrier's work.
func (c *Carrier) Job() job.Job {
	return job.Job{Name: "packing", Every: c.Every, Wake: c.wake, Step: c.Step}
}

// Step does what can be done now, without waiting for Nova.
func (c *Carrier) Step(ctx context.Context) error {
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

// advance does one thing; more says that the next can be done at once.
func (c *Carrier) advance(ctx context.Context, held *job.Held, r Run) (more bool, err error) {
	i, left := r.next()
	switch {
	case left && r.Progress[i].State != Waiting:
		return c.follow(ctx, held, r, i)
	case r.Status == Stopping:
		return false, c.end(ctx, held, r, Stopped, r.Reason)
	case !left:
		return false, c.end(ctx, held, r, Done, done(&r))
	}
	if failed := r.Count(Undone); c.MostFailed > 0 && failed >= c.MostFailed {
		return false, c.end(ctx, held, r, Failed, fmt.Sprintf("%d moves have failed", failed))
	}
	s, err := c.observe(ctx)
	if err != nil {
		return false, fmt.Errorf("look at the cloud before the next move: %w", err)
	}
	if doubt := c.Doubt(); doubt != "" {
		c.Log.WarnContext(ctx, "nothing is moved meanwhile", "run", r.ID, "doubt", doubt)
		return false, nil
	}
	verdict := s.Judge(&r.Plan, i, r.Floor())
	switch {
	case verdict.Skip != "":
		return true, c.note(ctx, held, r, i, Skipped, verdict.Skip)
	case verdict.End != "":
		return false, c.end(ctx, held, r, Done, verdict.End)
	}
	return true, c.begin(ctx, held, r, i)
}
