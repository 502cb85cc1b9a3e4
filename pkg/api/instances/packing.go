// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"net/http"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// PackingAdmin plans live migrations, and carries plans out; *rebalance.Admin implements it.
type PackingAdmin interface {
	Packer
	PackingRuns
}

// Packer plans live migrations, and starts and stops runs that carry plans out. by is the id of a user.
type Packer interface {
	Plan(ctx context.Context, o rebalance.Options) (rebalance.Plan, error)
	Apply(ctx context.Context, by string, o rebalance.Options, plan string) (rebalance.Run, error)
	Stop(ctx context.Context, by, id string) (rebalance.Run, error)
}

// PackingRuns reads the runs.
type PackingRuns interface {
	Run(ctx context.Context, id string) (rebalance.Run, error)
	Runs(ctx context.Context, most int) ([]rebalance.Run, error)
}

// Packing serves the calls about live migrations. The zero Packing moves no instances.
type Packing struct {
	Admin PackingAdmin
	// Preset contains the options that apply if a request omits them; CPUNeed is the configured
	// source of needs.
	Preset  rebalance.Options
	CPUNeed string
}

// options reads the options of a plan.
func (s Packing) options(c *serving.Call) (o rebalance.Options, plan string, err error) {
	var body v1.PackingRequest
	if _, err := c.Body(&body, serving.AnyBody); err != nil {
		return o, "", err
	}
	o = s.Preset
	o.Algorithm = body.Algorithm
	if body.Migrations != nil {
		o.Migrations = *body.Migrations
	}
	if body.MemoryMB != nil {
		o.MemoryMB = *body.MemoryMB
	}
	if body.Consolidate != nil {
		o.Consolidate = *body.Consolidate
	}
	if body.Empty {
		if body.Consolidate != nil {
			return o, "", fault.Field("empty", "means as many hosts as possible; use either empty or consolidate")
		}
		o.Consolidate = rebalance.AllThatCan
	}
	if body.Floor != nil {
		o.Floor = *body.Floor
	}
	return o, body.Plan, o.Check()
}

// plan handles POST /v1/packing.
func (s Packing) plan(c *serving.Call) (any, error) {
	o, meant, err := s.options(c)
	if err == nil && meant != "" {
		err = fault.Field("plan", "is for %s, which carries out a plan", runsPath)
	}
	if err != nil {
		return nil, err
	}
	p, err := s.Admin.Plan(c.Request.Context(), o)
	if err != nil {
		return nil, err
	}
	return s.presentedPlan(&p), nil
}

// apply handles POST /v1/packing/runs.
func (s Packing) apply(c *serving.Call) (any, error) {
	o, meant, err := s.options(c)
	if err != nil {
		return nil, err
	}
	r, err := s.Admin.Apply(c.Request.Context(), c.Asker().UserID, o, meant)
	if err != nil {
		return nil, err
	}
	c.Header("Location", runsPath+"/"+r.ID)
	c.Status(http.StatusCreated)
	return s.presentedRun(&r), nil
}

// list handles GET /v1/packing/runs.
func (s Packing) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit")
	limit := q.Number("limit", serving.DefaultPage, 1, serving.LargestPage)
	if q.Err != nil {
		return nil, q.Err
	}
	found, err := s.Admin.Runs(c.Request.Context(), limit)
	if err != nil {
		return nil, err
	}
	answer := v1.PackingRuns{Runs: []v1.PackingRun{}}
	for i := range found {
		answer.Runs = append(answer.Runs, s.presentedRun(&found[i]))
	}
	return answer, nil
}

// show handles GET /v1/packing/runs/{id}.
func (s Packing) show(c *serving.Call) (any, error) {
	return s.one(c, func(ctx context.Context) (rebalance.Run, error) { return s.Admin.Run(ctx, c.PathID()) })
}

// stop handles DELETE /v1/packing/runs/{id}: the run ends and stays in the list.
func (s Packing) stop(c *serving.Call) (any, error) {
	return s.one(c, func(ctx context.Context) (rebalance.Run, error) {
		return s.Admin.Stop(ctx, c.Asker().UserID, c.PathID())
	})
}

func (s Packing) one(c *serving.Call, get func(ctx context.Context) (rebalance.Run, error)) (any, error) {
	r, err := get(c.Request.Context())
	if err != nil {
		return nil, err
	}
	return s.presentedRun(&r), nil
}

func (s Packing) presentedPlan(p *rebalance.Plan) v1.PackingPlan {
	out := v1.PackingPlan{
		ID: p.ID, At: p.At.Time(), Algorithm: p.Algorithm, CPUNeed: s.CPUNeed, Hosts: p.Hosts, Instances: p.Instances,
		Movable: p.Movable, Measured: p.Measured, MinYield: p.Before, PlannedYield: p.After, UpperBound: p.Bound, MemoryMB: p.Memory(),
		Moves: []v1.PackingMove{}, Emptied: append([]string{}, p.Emptied...), Kept: packingStays(p.Kept), Stays: packingStays(p.Stays),
		Excluded: []v1.PackingExcluded{}, Reasons: append([]string{}, p.Reasons...),
	}
	for _, m := range p.Moves {
		out.Moves = append(out.Moves, v1.PackingMove{
			Instance: m.Instance, Name: m.Name, ProjectID: m.ProjectID, From: m.From, To: m.To, VCPUs: m.VCPUs, MemoryMB: m.MemoryMB,
			Need: m.Need, MinYield: m.Yield, Between: m.Between,
		})
	}
	for _, b := range p.Excluded {
		out.Excluded = append(out.Excluded, v1.PackingExcluded{Host: b.Host, MinYield: b.Yield, Reason: b.Reason})
	}
	return out
}

func packingStays(list []rebalance.Stay) []v1.PackingStay {
	out := []v1.PackingStay{}
	for _, stay := range list {
		out = append(out, v1.PackingStay(stay))
	}
	return out
}

func (s Packing) presentedRun(r *rebalance.Run) v1.PackingRun {
	out := v1.PackingRun{
		ID: r.ID, Status: string(r.Status), Reason: r.Reason, By: r.By, Created: r.Created.Time(), Ended: v1.TimeOf(r.Ended),
		Moved: r.Count(rebalance.MoveDone), Skipped: r.Count(rebalance.MoveSkipped), Failed: r.Count(rebalance.MoveFailed), Plan: s.presentedPlan(&r.Plan),
	}
	out.Left = len(r.Progress) - out.Moved - out.Skipped - out.Failed
	if r.Yield > 0 {
		out.MinYield = &r.Yield
	}
	for i, p := range r.Progress {
		m := &out.Plan.Moves[i]
		m.State, m.Reason, m.Begun, m.Ended = string(p.State), p.Reason, v1.TimeOf(p.Begun), v1.TimeOf(p.Ended)
	}
	return out
}

const (
	packingPath = "/v1/packing"
	runsPath    = packingPath + "/runs"
)
