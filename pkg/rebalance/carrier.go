package rebalance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
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
	// readLimit bounds one reading of the cloud.
	readLimit = 5 * time.Minute
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

// open returns the run that is not over; nil where there is none.
func (c *Carrier) open(ctx context.Context) (*Run, error) {
	last, err := c.Archive.PackingRuns(ctx, 1)
	if err != nil || len(last) == 0 || last[0].Over() {
		return nil, err
	}
	return &last[0], nil
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
	s, err := c.read(ctx)
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

func done(r *Run) string {
	if skipped, failed := r.Count(Skipped), r.Count(Undone); skipped+failed > 0 {
		return fmt.Sprintf("%d of %d moves were made, %d were left out, %d failed", r.Count(Moved), len(r.Progress), skipped, failed)
	}
	return "all moves were made"
}

// errOther says that a run has become another one since it was read, as by a stop.
var errOther = errors.New("the run has changed meanwhile")

// begin stores that a move is begun and then tells Nova.
func (c *Carrier) begin(ctx context.Context, held *job.Held, r Run, i int) error {
	m := r.Plan.Moves[i]
	sight, err := c.Cloud.Look(ctx, m.Instance)
	switch {
	case fault.Is(err, fault.NotFound):
		return c.note(ctx, held, r, i, Skipped, "the instance is gone")
	case err != nil:
		return err
	case sight.Host != m.From || sight.Task != "" || sight.Status != "ACTIVE":
		return c.note(ctx, held, r, i, Skipped, fmt.Sprintf("it is %s on %s by now%s", sight.Status, sight.Host, busy(sight)))
	case sight.Locked:
		return c.note(ctx, held, r, i, Skipped, "it is locked by now")
	}
	telling, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	_, err = c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		p := &r.Progress[i]
		if r.Status != Running || p.State != Waiting {
			return errOther
		}
		p.State, p.Begun, p.Before, p.Told = Moving, c.Now(), sight.Migration.ID, p.Told+1
		return nil
	})
	switch {
	case errors.Is(err, errOther):
		return nil // the next look is at what it is now
	case err != nil:
		return err
	}
	c.Log.InfoContext(ctx, "an instance is moved", "run", r.ID, "instance", m.Instance, "from", m.From, "to", m.To)
	if err = held.Ensure(telling); err == nil {
		err = c.Cloud.Move(telling, m.Instance, m.To)
	}
	return c.told(ctx, held, r, i, err)
}

func busy(s Sight) string {
	if s.Task == "" {
		return ""
	}
	return ", and Nova is busy with it: " + s.Task
}

// told notes that Nova refuses a move. An error that does not tell whether Nova received the
// call is returned: the next step looks at the instance.
func (c *Carrier) told(ctx context.Context, held *job.Held, r Run, i int, err error) error {
	if err == nil {
		return nil
	}
	if fault.Is(err, fault.Conflict) && r.Progress[i].Told > 0 {
		return nil // it may be busy with what it was told before, though it has not answered
	}
	switch fault.Of(err).Kind {
	case fault.Invalid, fault.Conflict, fault.Denied, fault.NotFound:
	default:
		return err
	}
	return c.note(ctx, held, r, i, Undone, "Nova refuses: "+fault.Of(err).Message)
}

// note stores what has become of a move.
func (c *Carrier) note(ctx context.Context, held *job.Held, r Run, i int, state State, why string) error {
	_, err := c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		p := &r.Progress[i]
		p.State, p.Reason, p.Ended = state, why, c.Now()
		return nil
	})
	if err == nil {
		c.made[state].Add(1)
	}
	if err == nil && state != Moved {
		c.Log.WarnContext(ctx, "an instance is not moved", "run", r.ID, "instance", r.Plan.Moves[i].Instance, "state", string(state), "reason", why)
	}
	return err
}

// read reads the cloud. The lease is renewed meanwhile.
func (c *Carrier) read(ctx context.Context) (Situation, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return c.Situation(ctx)
}

// end ends a run, with the yield that there is then, and says which hosts became empty.
func (c *Carrier) end(ctx context.Context, held *job.Held, r Run, status Status, why string) error {
	yield := 0.0
	if s, err := c.read(ctx); err == nil {
		yield = s.Yield()
		why += s.emptied(&r.Plan)
	} else {
		c.Log.WarnContext(ctx, "what came of a run is not known", "run", r.ID, "error", err)
	}
	_, err := c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		r.Status, r.Reason, r.Ended, r.Yield = status, why, c.Now(), yield
		return nil
	})
	if err == nil {
		c.Log.InfoContext(ctx, "a run has ended", "run", r.ID, "status", string(status), "reason", why)
	}
	return err
}
