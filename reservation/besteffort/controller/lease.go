package controller

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// errLost says that another process works the queue off now.
var errLost = errors.New("the lease of best-effort work was lost to another process")

// longestStep is for how long at most the lease is kept for a step.
const longestStep = 5 * time.Minute

// keep prolongs the lease until done is called. Where it is lost, the step's context ends.
func (c *Controller) keep(ctx context.Context, lease job.Lease) (step context.Context, done func()) {
	step, stop := context.WithCancelCause(ctx)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker, last := time.NewTicker(leaseTTL/4), time.NewTimer(longestStep)
		defer ticker.Stop()
		defer last.Stop()
		for {
			select {
			case <-over:
				return
			case <-step.Done():
				return
			case <-last.C:
				return
			case <-ticker.C:
			}
			again, held, err := c.Leases.Take(step, leaseName, leaseTTL)
			if err == nil && (!held || again.Epoch != lease.Epoch) {
				c.Log.WarnContext(ctx, "another process has taken best-effort work over in the middle of a step", "lease", leaseName, "epoch", lease.Epoch)
				stop(errLost)
				return
			}
		}
	}()
	return step, func() {
		close(over)
		stop(nil)
		<-ended
	}
}

// holds fails where the lease is not this process's any more, or the step is to stop. It
// is asked right before each order: a process that stood still meanwhile knows nothing of
// that. It is prolonged once a second at most.
func (c *Controller) holds(ctx context.Context, w *view) error {
	if w.stopped != nil {
		return w.stopped
	}
	now := c.Now()
	if w.held == now {
		return nil
	}
	again, held, err := c.Leases.Take(ctx, leaseName, leaseTTL)
	if err == nil && (!held || again.Epoch != w.lease.Epoch) {
		err = errLost
		c.Log.WarnContext(ctx, "another process has taken best-effort work over in the middle of a step", "lease", leaseName, "epoch", w.lease.Epoch)
	}
	if err != nil {
		w.stopped = err
		return err
	}
	w.held = now
	return nil
}

// publish has it known what the plan expects, until the next one.
func (c *Controller) publish(plan besteffort.Plan, now span.Instant) {
	expected := expectations(plan, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected, c.planned = expected, now
}

// Expected gives what the last plan expects, where this process made it a short time ago.
func (c *Controller) Expected() (expected map[string]besteffort.Expectation, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected, c.expected != nil && c.Now() < c.planned.Add(int64(3*c.StepEvery/time.Second)+planAge)
}

// planAge is for how many seconds what a plan expects is shown.
const planAge = 5
