package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Decisions returns the placement decisions about an instance or about a request ("req-…"),
// the newest first.
func (c *Client) Decisions(ctx context.Context, id string) (v1.Decisions, error) {
	return answer[v1.Decisions](ctx, c, call{method: http.MethodGet, path: "/v1/decisions", id: &id})
}
