package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// FilterHosts returns which of the hosts a placement request may use.
func (c *Client) FilterHosts(ctx context.Context, question v1.FilterQuestion) (v1.FilterAnswer, error) {
	return answer[v1.FilterAnswer](ctx, c, call{method: http.MethodPost, path: "/v1/scheduler/filter", body: question})
}

// Health fails where Almanac does not answer or reports why it cannot serve.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/healthcheck"})
}

// Readiness returns the state of each part of Almanac. Where some are not well it returns
// them too, with an error that has their reasons.
func (c *Client) Readiness(ctx context.Context) (v1.Readiness, error) {
	return answer[v1.Readiness](ctx, c, call{method: http.MethodGet, path: "/v1/readiness", reports: true})
}

// Feed returns the link with which a calendar program reads the project's reservations.
func (c *Client) Feed(ctx context.Context) (v1.Feed, error) {
	return answer[v1.Feed](ctx, c, call{method: http.MethodGet, path: "/v1/feed"})
}

// Version is a version of the API that an Almanac serves.
type Version struct {
	ID     string `json:"id"`     // such as "v1.0"
	Status string `json:"status"` // CURRENT, SUPPORTED or DEPRECATED
}

// Versions returns the versions of the API that Almanac serves.
func (c *Client) Versions(ctx context.Context) ([]Version, error) {
	found, err := answer[struct {
		Versions []Version `json:"versions"`
	}](ctx, c, call{method: http.MethodGet, path: "/"})
	return found.Versions, err
}
