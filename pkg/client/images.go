package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// ImageFilter selects images on hosts; a zero field selects all.
type ImageFilter struct {
	Image  string // id or name
	Host   string
	States []string
}

// Images returns the images on hosts and those under transfer, by name, id and host.
func (c *Client) Images(ctx context.Context, f ImageFilter) (v1.Images, error) {
	query := url.Values{}
	set(query, "image", f.Image)
	set(query, "host", f.Host)
	set(query, "state", strings.Join(f.States, ","))
	return answer[v1.Images](ctx, c, call{method: http.MethodGet, path: "/v1/images", query: query})
}
