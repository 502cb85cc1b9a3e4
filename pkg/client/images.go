package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// ImageFilter selects images on hosts; what is zero selects all.
type ImageFilter struct {
	Image  string // its id or name
	Host   string
	States []string
}

// Images gives the images on hosts and on their way there, by name, id and host.
func (c *Client) Images(ctx context.Context, f ImageFilter) (v1.Images, error) {
	query := url.Values{}
	set(query, "image", f.Image)
	set(query, "host", f.Host)
	set(query, "state", strings.Join(f.States, ","))
	var found v1.Images
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/images", query: query, into: &found})
	return found, err
}
