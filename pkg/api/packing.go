// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// PackingAdmin plans live migrations and starts packing runs; *rebalance.Admin implements it. by is
// the id of a user.
type PackingAdmin interface {
	Plan(ctx context.Context, o rebalance.Options) (rebalance.Plan, error)
	Apply(ctx context.Context, by string, o rebalance.Options, plan string) (rebalance.Run, error)
	Stop(ctx context.Context, by, id string) (rebalance.Run, error)
	Run(ctx context.Context, id string) (rebalance.Run, error)
	Runs(ctx context.Context, most int) ([]rebalance.Run, error)
}

// Packing moves instances. The zero Packing moves none.
type Packing struct {
	Admin PackingAdmin
	// Preset contains the options that apply if a request omits them; CPUNeed is the configured
	// source of needs.
	Preset  rebalance.Options
	CPUNeed string
}

const packingRunsPath = "/v1/packing/runs"

// packingOptions reads the options of a plan.
func (s *server) packingOptions(c *gin.Context) (o rebalance.Options, plan string, err error) {
	var body v1.PackingRequest
	if _, err := s.body(c, &body, s.MaxBodyBytes); err != nil {
		return o, "", err
	}
	o = s.Packing.Preset
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

// planPacking handles POST /v1/packing.
func (s *server) planPacking(c *gin.Context) (any, error) {
	o, meant, err := s.packingOptions(c)
	if err == nil && meant != "" {
		err = fault.Field("plan", "is for %s, which carries out a plan", packingRunsPath)
	}
	if err != nil {
		return nil, err
	}
	p, err := s.Packing.Admin.Plan(c.Request.Context(), o)
	if err != nil {
		return nil, err
	}
	return s.packingPlan(&p), nil
}

// applyPacking handles POST /v1/packing/runs.
func (s *server) applyPacking(c *gin.Context) (any, error) {
	o, meant, err := s.packingOptions(c)
	if err != nil {
		return nil, err
	}
	r, err := s.Packing.Admin.Apply(c.Request.Context(), asking(c).UserID, o, meant)
	if err != nil {
		return nil, err
	}
	c.Header("Location", packingRunsPath+"/"+r.ID)
	c.Status(http.StatusCreated)
	return s.packingRun(&r), nil
}

// listPackingRuns handles GET /v1/packing/runs.
func (s *server) listPackingRuns(c *gin.Context) (any, error) {
	q := readQuery(c, "limit")
	limit := q.number("limit", defaultPage, 1, largestPage)
	if q.err != nil {
		return nil, q.err
	}
	found, err := s.Packing.Admin.Runs(c.Request.Context(), limit)
	if err != nil {
		return nil, err
	}
	answer := v1.PackingRuns{Runs: []v1.PackingRun{}}
	for i := range found {
		answer.Runs = append(answer.Runs, s.packingRun(&found[i]))
	}
	return answer, nil
}

// showPackingRun handles GET /v1/packing/runs/{id}.
func (s *server) showPackingRun(c *gin.Context) (any, error) {
	return s.onePackingRun(c, func(ctx context.Context) (rebalance.Run, error) { return s.Packing.Admin.Run(ctx, pathID(c)) })
}

// stopPackingRun handles DELETE /v1/packing/runs/{id}: the run ends and stays in the list.
func (s *server) stopPackingRun(c *gin.Context) (any, error) {
	return s.onePackingRun(c, func(ctx context.Context) (rebalance.Run, error) {
		return s.Packing.Admin.Stop(ctx, asking(c).UserID, pathID(c))
	})
}

func (s *server) onePackingRun(c *gin.Context, get func(ctx context.Context) (rebalance.Run, error)) (any, error) {
	r, err := get(c.Request.Context())
	if err != nil {
		return nil, err
	}
	return s.packingRun(&r), nil
}

func (s *server) packingPlan(p *rebalance.Plan) v1.PackingPlan {
	out := v1.PackingPlan{
		ID: p.ID, At: p.At.Time(), Algorithm: p.Algorithm, CPUNeed: s.Packing.CPUNeed, Hosts: p.Hosts, Instances: p.Instances,
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

func (s *server) packingRun(r *rebalance.Run) v1.PackingRun {
	out := v1.PackingRun{
		ID: r.ID, Status: string(r.Status), Reason: r.Reason, By: r.By, Created: r.Created.Time(), Ended: when(r.Ended),
		Moved: r.Count(rebalance.MoveDone), Skipped: r.Count(rebalance.MoveSkipped), Failed: r.Count(rebalance.MoveFailed), Plan: s.packingPlan(&r.Plan),
	}
	out.Left = len(r.Progress) - out.Moved - out.Skipped - out.Failed
	if r.Yield > 0 {
		out.MinYield = &r.Yield
	}
	for i, p := range r.Progress {
		m := &out.Plan.Moves[i]
		m.State, m.Reason, m.Begun, m.Ended = string(p.State), p.Reason, when(p.Begun), when(p.Ended)
	}
	return out
}
