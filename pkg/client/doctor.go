package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Examine returns the problems that the doctor finds. It changes nothing.
func (c *Client) Examine(ctx context.Context) (v1.Examination, error) {
	return answer[v1.Examination](ctx, c, call{method: http.MethodGet, path: "/v1/doctor"})
}

// Fix fixes the problems that can be fixed. With DryRun it only returns what it would do.
func (c *Client) Fix(ctx context.Context, treatment v1.Treatment) (v1.Examination, error) {
	return answer[v1.Examination](ctx, c, call{method: http.MethodPost, path: "/v1/doctor", body: treatment})
}
