package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Images gives the images on hosts and on their way there, by name, id and host.
func (c *Client) Images(ctx context.Context) (v1.Images, error) {
	var found v1.Images
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/images", into: &found})
	return found, err
}
