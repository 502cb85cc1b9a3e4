package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const packingRunsPath = "/v1/packing/runs"

// PlanPacking returns a plan of migrations. It moves nothing.
func (c *Client) PlanPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingPlan, error) {
	return answer[v1.PackingPlan](ctx, c, call{method: http.MethodPost, path: "/v1/packing", body: r})
}

// ApplyPacking plans migrations and starts a run that carries them out.
func (c *Client) ApplyPacking(ctx context.Context, r v1.PackingRequest) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodPost, path: packingRunsPath, body: r})
}

// PackingRuns returns the runs, the latest first. A limit of 0 is Almanac's default.
func (c *Client) PackingRuns(ctx context.Context, limit int) (v1.PackingRuns, error) {
	query := url.Values{}
	setNumber(query, "limit", limit)
	return answer[v1.PackingRuns](ctx, c, call{method: http.MethodGet, path: packingRunsPath, query: query})
}

// PackingRun returns one run.
func (c *Client) PackingRun(ctx context.Context, id string) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodGet, path: packingRunsPath, id: &id})
}

// StopPacking ends a run after the move that is in progress, and returns the run.
func (c *Client) StopPacking(ctx context.Context, id string) (v1.PackingRun, error) {
	return answer[v1.PackingRun](ctx, c, call{method: http.MethodDelete, path: packingRunsPath, id: &id})
}
