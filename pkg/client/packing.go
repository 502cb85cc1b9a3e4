package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// PlanPacking gives what would be moved; nothing is.
func (c *Client) PlanPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingPlan, error) {
	var plan v1.PackingPlan
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/packing", body: r, into: &plan})
	return plan, err
}

// ApplyPacking plans, and has the plan carried out.
func (c *Client) ApplyPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingRun, error) {
	var run v1.PackingRun
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/packing/runs", body: r, into: &run})
	return run, err
}

// PackingRuns gives the latest runs, the last one first; a limit of 0 leaves how many to
// Almanac.
func (c *Client) PackingRuns(ctx context.Context, limit int) (v1.PackingRuns, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var runs v1.PackingRuns
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/packing/runs", query: query, into: &runs})
	return runs, err
}

// PackingRun gives a run.
func (c *Client) PackingRun(ctx context.Context, id string) (v1.PackingRun, error) {
	return c.packingRun(ctx, http.MethodGet, id)
}

// StopPacking has a run end after the move that is under way, and gives it as it is then.
func (c *Client) StopPacking(ctx context.Context, id string) (v1.PackingRun, error) {
	return c.packingRun(ctx, http.MethodDelete, id)
}

func (c *Client) packingRun(ctx context.Context, method, id string) (v1.PackingRun, error) {
	var run v1.PackingRun
	path, err := member("/v1/packing/runs/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: method, path: path, into: &run})
	}
	return run, err
}
