package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Examine asks what is not as it should be; nothing is changed.
func (c *Client) Examine(ctx context.Context) (v1.Examination, error) {
	var answer v1.Examination
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/doctor", into: &answer})
	return answer, err
}

// Fix has what can be fixed fixed, or with DryRun only asks what would be done.
func (c *Client) Fix(ctx context.Context, treatment v1.Treatment) (v1.Examination, error) {
	var answer v1.Examination
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/doctor", body: treatment, into: &answer})
	return answer, err
}
