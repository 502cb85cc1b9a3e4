package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Decisions gives what was decided about an instance, or in a request ("req-…"), the
// newest first.
func (c *Client) Decisions(ctx context.Context, id string) (v1.Decisions, error) {
	var found v1.Decisions
	path, err := member("/v1/decisions/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodGet, path: path, into: &found})
	}
	return found, err
}
