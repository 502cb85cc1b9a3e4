package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// SubmitBestEffort puts work into the queue. With a key it is safe to send it again: the
// same key gives the same request.
func (c *Client) SubmitBestEffort(ctx context.Context, req v1.BestEffortRequest, o CreateOptions) (v1.BestEffort, error) {
	var made v1.BestEffort
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/besteffort", body: req, key: o.IdempotencyKey, into: &made})
	return made, err
}

// BestEffortFilter selects best-effort work.
type BestEffortFilter struct {
	All bool // those that are over too
	// ProjectID and AllProjects are for admins; without them the list has the caller's own
	// project.
	ProjectID   string
	AllProjects bool
	PageSize    int // 0 leaves it to Almanac
}

// ListBestEffort gives best-effort work in the order in which it was submitted. Pages are
// fetched as they are needed. After an error nothing more is given.
func (c *Client) ListBestEffort(ctx context.Context, f BestEffortFilter) iter.Seq2[v1.BestEffort, error] {
	query := url.Values{}
	set(query, "project_id", f.ProjectID)
	if f.All {
		query.Set("all", "true")
	}
	if f.AllProjects {
		query.Set("all_projects", "true")
	}
	return pages(query, f.PageSize, func(query url.Values) ([]v1.BestEffort, string, error) {
		var page v1.BestEfforts
		err := c.do(ctx, call{method: http.MethodGet, path: "/v1/besteffort", query: query, into: &page})
		return page.Requests, string(page.Next), err
	})
}

// BestEffort gives one request.
func (c *Client) BestEffort(ctx context.Context, id string) (v1.BestEffort, error) {
	var found v1.BestEffort
	path, err := member("/v1/besteffort/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodGet, path: path, into: &found})
	}
	return found, err
}

// CancelBestEffort gives a request up: its servers are deleted.
func (c *Client) CancelBestEffort(ctx context.Context, id string) error {
	path, err := member("/v1/besteffort/", "id", id)
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path})
}
