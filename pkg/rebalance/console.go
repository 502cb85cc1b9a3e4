package rebalance

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Console is what operators plan, begin and stop runs with.
type Console struct {
	Records   Records
	Archive   Archive
	Situation func(ctx context.Context) (Situation, error)
	Doubt     func() string
	// Ordered is called when there is something to do.
	Ordered func()
	Now     func() span.Instant
	NewID   func() string
}

// Plan plans and changes nothing. That the inventory is in doubt is among the reasons.
func (c *Console) Plan(ctx context.Context, o Options) (Plan, error) {
	if err := o.Check(); err != nil {
		return Plan{}, err
	}
	s, err := c.Situation(ctx)
	if err != nil {
		return Plan{}, err
	}
	p, err := s.Plan(ctx, o)
	if doubt := c.Doubt(); err == nil && doubt != "" {
		p.Reasons = append(p.Reasons, "nothing would be moved now, as the inventory is in doubt: "+doubt)
	}
	return p, err
}

// Apply plans, and lets the plan be carried out. Where plan is not empty it is the id of the
// one that is meant. It fails with a Conflict fault where another one is made by now, where
// there is nothing to move, where the inventory is in doubt, and while a run is not over.
func (c *Console) Apply(ctx context.Context, by string, o Options, plan string) (Run, error) {
	p, err := c.Plan(ctx, o)
	if err != nil {
		return Run{}, err
	}
	switch doubt := c.Doubt(); {
	case doubt != "":
		return Run{}, fault.New(fault.Conflict, "nothing is moved while the inventory is in doubt: %s", doubt)
	case plan != "" && plan != p.ID:
		return Run{}, fault.New(fault.Conflict, "plan %s is not what would be done by now: that is plan %s", plan, p.ID)
	case len(p.Moves) == 0:
		return Run{}, fault.New(fault.Conflict, "there is nothing to move: %s", last(p.Reasons))
	}
	r := Run{ID: c.NewID(), By: by, Status: Running, Created: c.Now(), Plan: p, Progress: make([]Progress, len(p.Moves))}
	for i := range r.Progress {
		r.Progress[i].State = Waiting
	}
	if err := c.Records.AddPackingRun(ctx, r); err != nil {
		return Run{}, err
	}
	c.Ordered()
	return r, nil
}

func last(sentences []string) string {
	if len(sentences) == 0 {
		return "nothing would become better"
	}
	return sentences[len(sentences)-1]
}

// Stop has a run end after the move that is under way. One that is over stays as it is.
func (c *Console) Stop(ctx context.Context, by, id string) (Run, error) {
	r, err := c.Records.ChangePackingRun(ctx, job.Lease{}, id, func(r *Run) error {
		if r.Status == Running {
			r.Status, r.Reason = Stopping, fmt.Sprintf("stopped by %s", by)
		}
		return nil
	})
	c.Ordered()
	return r, err
}

// Run gives a run, and Runs the latest.
func (c *Console) Run(ctx context.Context, id string) (Run, error) {
	return c.Archive.PackingRun(ctx, id)
}

// Runs gives the latest runs, the last one first.
func (c *Console) Runs(ctx context.Context, most int) ([]Run, error) {
	return c.Archive.PackingRuns(ctx, most)
}
