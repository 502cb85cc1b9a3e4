// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// errOther means that the run has changed since it was read, for example because an operator
// stopped it.
var errOther = errors.New("the run has changed")

// begin stores that move i of the run begins, and then orders Nova to make it.
func (c *Executor) begin(ctx context.Context, held *job.Held, r Run, i int) error {
	m := r.Plan.Moves[i]
	sight, err := c.Cloud.Look(ctx, m.Instance)
	switch {
	case fault.Is(err, fault.NotFound):
		return c.note(ctx, held, r, i, MoveSkipped, "the instance is gone")
	case err != nil:
		return err
	case sight.Host != m.From || sight.Task != "" || sight.Status != "ACTIVE":
		return c.note(ctx, held, r, i, MoveSkipped, fmt.Sprintf("it is now %s on %s%s", sight.Status, sight.Host, busy(sight)))
	case sight.Locked:
		return c.note(ctx, held, r, i, MoveSkipped, "it is now locked")
	}
	telling, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	_, err = c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		p := &r.Progress[i]
		if r.Status != RunActive || p.State != MoveWaiting {
			return errOther
		}
		p.State, p.Begun, p.Before, p.Told = MoveUnderway, c.Now(), sight.Migration.ID, p.Told+1
		return nil
	})
	switch {
	case errors.Is(err, errOther):
		return nil // the next step reads the run as it is then
	case err != nil:
		return err
	}
	c.Log.InfoContext(ctx, "moving an instance", "run", r.ID, "instance", m.Instance, "from", m.From, "to", m.To)
	if err = held.Ensure(telling); err == nil {
		err = c.Cloud.Move(telling, m.Instance, m.To)
	}
	return c.told(ctx, held, r, i, err)
}

// busy returns the task that Nova carries out on the instance, as the end of a sentence; "" for none.
func busy(s Sight) string {
	if s.Task == "" {
		return ""
	}
	return ", and Nova is busy with it: " + s.Task
}

// told handles the answer of Nova to the order of a move. If Nova refuses, told stores that. It
// returns the errors after which Nova may have received the order; the next step then checks the
// instance.
func (c *Executor) told(ctx context.Context, held *job.Held, r Run, i int, err error) error {
	if err == nil {
		return nil
	}
	if fault.Is(err, fault.Conflict) && r.Progress[i].Told > 0 {
		return nil // it may be busy with an earlier order that it did not answer
	}
	switch fault.Of(err).Kind {
	case fault.Invalid, fault.Conflict, fault.Denied, fault.NotFound:
	default:
		return err
	}
	return c.note(ctx, held, r, i, MoveFailed, "Nova refuses: "+fault.Of(err).Message)
}

// note stores the final state of move i.
func (c *Executor) note(ctx context.Context, held *job.Held, r Run, i int, state State, why string) error {
	_, err := c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		p := &r.Progress[i]
		p.State, p.Reason, p.Ended = state, why, c.Now()
		return nil
	})
	if err == nil {
		c.made[state].Add(1)
	}
	if err == nil && state != MoveDone {
		c.Log.WarnContext(ctx, "an instance was not moved", "run", r.ID, "instance", r.Plan.Moves[i].Instance, "state", string(state), "reason", why)
	}
	return err
}

// end ends a run. It stores the smallest yield at the end, and adds to the reason which hosts
// became empty.
func (c *Executor) end(ctx context.Context, held *job.Held, r Run, status Status, why string) error {
	yield := 0.0
	if s, err := c.observe(ctx); err == nil {
		yield = s.Yield()
		why += s.emptied(&r.Plan)
	} else {
		c.Log.WarnContext(ctx, "could not determine the result of a packing run", "run", r.ID, "error", err)
	}
	_, err := c.Records.ChangePackingRun(ctx, held.Lease, r.ID, func(r *Run) error {
		r.Status, r.Reason, r.Ended, r.Yield = status, why, c.Now(), yield
		return nil
	})
	if err == nil {
		c.Log.InfoContext(ctx, "a packing run has ended", "run", r.ID, "status", string(status), "reason", why)
	}
	return err
}

// done returns how the moves of a run have ended, as a sentence.
func done(r *Run) string {
	if skipped, failed := r.Count(MoveSkipped), r.Count(MoveFailed); skipped+failed > 0 {
		return fmt.Sprintf("%d of %d moves were made, %d were skipped, %d failed", r.Count(MoveDone), len(r.Progress), skipped, failed)
	}
	return "all moves were made"
}
