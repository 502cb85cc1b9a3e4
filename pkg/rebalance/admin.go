// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Admin is what operators use to plan, apply and stop packing runs.
type Admin struct {
	Records   Records
	Archive   Archive
	Situation func(ctx context.Context) (Situation, error)
	Untrusted func() string
	// Ordered is called when the executor should make a step.
	Ordered func()
	Now     func() span.Instant
	NewID   func() string
}

// Plan returns a plan and changes nothing. If the inventory is untrusted, that is among the plan's
// reasons.
func (c *Admin) Plan(ctx context.Context, o Options) (Plan, error) {
	if err := o.Check(); err != nil {
		return Plan{}, err
	}
	s, err := c.Situation(ctx)
	if err != nil {
		return Plan{}, err
	}
	p, err := s.Plan(ctx, o)
	if untrusted := c.Untrusted(); err == nil && untrusted != "" {
		p.Reasons = append(p.Reasons, "nothing would be moved now, as the inventory is untrusted: "+untrusted)
	}
	return p, err
}

// Apply makes a plan and stores a run that carries it out. If plan is not empty, it is the id of
// the plan that the operator has seen. Apply fails with a Conflict fault if the plan is a different
// one now, if there is nothing to move, if the inventory is untrusted, and while another run is
// active.
func (c *Admin) Apply(ctx context.Context, by string, o Options, plan string) (Run, error) {
	p, err := c.Plan(ctx, o)
	if err != nil {
		return Run{}, err
	}
	switch untrusted := c.Untrusted(); {
	case untrusted != "":
		return Run{}, fault.New(fault.Conflict, "nothing is moved while the inventory is untrusted: %s", untrusted)
	case plan != "" && plan != p.ID:
		return Run{}, fault.New(fault.Conflict, "plan %s is out of date: the current plan is %s", plan, p.ID)
	case len(p.Moves) == 0:
		return Run{}, fault.New(fault.Conflict, "there is nothing to move: %s", last(p.Reasons))
	}
	r := Run{ID: c.NewID(), By: by, Status: RunActive, Created: c.Now(), Plan: p, Progress: make([]Progress, len(p.Moves))}
	for i := range r.Progress {
		r.Progress[i].State = MoveWaiting
	}
	if err := c.Records.AddPackingRun(ctx, r); err != nil {
		return Run{}, err
	}
	c.Ordered()
	return r, nil
}

// last returns the last of the sentences, or that nothing would improve.
func last(sentences []string) string {
	if len(sentences) == 0 {
		return "nothing would improve"
	}
	return sentences[len(sentences)-1]
}

// Stop ends a run after its current move. A run that is over stays as it is.
func (c *Admin) Stop(ctx context.Context, by, id string) (Run, error) {
	r, err := c.Records.ChangePackingRun(ctx, job.Lease{}, id, func(r *Run) error {
		if r.Status == RunActive {
			r.Status, r.Reason = RunStopping, fmt.Sprintf("stopped by %s", by)
		}
		return nil
	})
	c.Ordered()
	return r, err
}

// Run returns the run with this id.
func (c *Admin) Run(ctx context.Context, id string) (Run, error) {
	return c.Archive.PackingRun(ctx, id)
}

// Runs returns at most most runs, the latest first.
func (c *Admin) Runs(ctx context.Context, most int) ([]Run, error) {
	return c.Archive.PackingRuns(ctx, most)
}
