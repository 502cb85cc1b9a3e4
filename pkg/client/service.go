package client

import (
	"context"
	"net/http"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// FilterHosts asks which of the hosts a placement request may use.
func (c *Client) FilterHosts(ctx context.Context, question v1.FilterQuestion) (v1.FilterAnswer, error) {
	var answer v1.FilterAnswer
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/scheduler/filter", body: question, into: &answer})
	return answer, err
}

// Health fails where Almanac does not answer or says why it cannot serve.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/healthcheck"})
}

// Readiness gives each part of Almanac. It fails with their reasons where some are not
// well, and gives them all the same.
func (c *Client) Readiness(ctx context.Context) (v1.Readiness, error) {
	var answer v1.Readiness
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/readiness", into: &answer, reports: true})
	return answer, err
}

// Feed gives the link under which a calendar program reads the project's reservations.
func (c *Client) Feed(ctx context.Context) (v1.Feed, error) {
	var answer v1.Feed
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/feed", into: &answer})
	return answer, err
}

// Version is a version of the API that an Almanac serves.
type Version struct {
	ID     string `json:"id"`     // such as "v1.0"
	Status string `json:"status"` // CURRENT, SUPPORTED or DEPRECATED
}

// Versions gives the versions of the API that Almanac serves.
func (c *Client) Versions(ctx context.Context) ([]Version, error) {
	var answer struct {
		Versions []Version `json:"versions"`
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/", into: &answer})
	return answer.Versions, err
}
