// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"cmp"
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// follow reads the state of a move that has begun, and stores its end or waits.
func (c *Executor) follow(ctx context.Context, held *job.Held, r Run, i int) (more bool, err error) {
	m, p := r.Plan.Moves[i], r.Progress[i]
	sight, err := c.Cloud.Look(ctx, m.Instance)
	switch {
	case fault.Is(err, fault.NotFound):
		return true, c.note(ctx, held, r, i, MoveSkipped, "the instance is gone")
	case err != nil && c.Now() < c.patience(p):
		return false, err
	case err != nil:
		return false, c.giveUp(ctx, held, r, i, fmt.Sprintf("its state is unknown: %v", err))
	}
	ours := sight.Migration.ID != p.Before
	switch {
	case sight.Task != "" || ours && !sight.Migration.Over:
		return false, c.wait(ctx, held, r, i)
	case sight.Host == m.To:
		return true, c.note(ctx, held, r, i, MoveDone, "")
	case ours || sight.Host != m.From:
		return true, c.note(ctx, held, r, i, MoveFailed, fmt.Sprintf("Nova has ended it as %s, and the instance is on %s",
			cmp.Or(sight.Migration.Status, "unknown"), cmp.Or(sight.Host, "no host")))
	case c.Now() < p.Begun.Add(heard): // the replica that began it may still call Nova
		return false, nil
	case p.Told >= mostTold:
		return true, c.note(ctx, held, r, i, MoveFailed, "Nova did not start it")
	case r.Status == RunStopping: // Nova has not received the order
		return true, c.note(ctx, held, r, i, MoveSkipped, "the run was stopped")
	}
	// Nova never received the order, because the process that began the move ended first.
	// The move waits again, so that the next step judges it in the current situation.
	_, err = c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		r.Progress[i].State = MoveWaiting
		return nil
	})
	return true, err
}

// patience returns the instant until which a move, or its abortion, may take.
func (c *Executor) patience(p Progress) span.Instant {
	return max(p.Begun, p.Aborted).Add(c.Timeout)
}

// wait lets a move continue until it takes too long. While the move is being aborted, wait repeats
// the order to abort.
func (c *Executor) wait(ctx context.Context, held *job.Held, r Run, i int) error {
	late := c.Now() >= c.patience(r.Progress[i])
	switch aborting := r.Progress[i].State == MoveAborting; {
	case !aborting && !late:
		return nil
	case aborting && !late:
		c.abort(ctx, held, r, i)
		return nil
	}
	return c.giveUp(ctx, held, r, i, "Nova has neither finished nor aborted it in time; the migration goes on")
}

// giveUp orders Nova to abort a move that has taken too long. If it has ordered that before, it
// ends the run.
func (c *Executor) giveUp(ctx context.Context, held *job.Held, r Run, i int, why string) error {
	if r.Progress[i].State == MoveAborting {
		if err := c.note(ctx, held, r, i, MoveFailed, why); err != nil {
			return err
		}
		return c.end(ctx, held, r, RunFailed, fmt.Sprintf("the move of instance %s does not end: %s", r.Plan.Moves[i].Instance, why))
	}
	_, err := c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		r.Progress[i].State, r.Progress[i].Aborted = MoveAborting, c.Now()
		return nil
	})
	if err == nil {
		c.abort(ctx, held, r, i)
	}
	return err
}

// abort orders Nova to abort a migration. Each step repeats the order, because Nova may not have
// received it, and refuses it while a migration is about to begin.
func (c *Executor) abort(ctx context.Context, held *job.Held, r Run, i int) {
	instance := r.Plan.Moves[i].Instance
	err := held.Ensure(ctx)
	if err == nil {
		err = c.Cloud.Abort(ctx, instance)
	}
	if err != nil {
		c.Log.WarnContext(ctx, "Nova did not abort a migration", "run", r.ID, "instance", instance, "error", err)
	}
}
