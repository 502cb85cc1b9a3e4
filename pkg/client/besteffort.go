// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const bestEffortPath = "/v1/besteffort"

// SubmitBestEffort queues a request. With an idempotency key it is safe to send it again: the
// same key returns the same request.
func (c *Client) SubmitBestEffort(ctx context.Context, req v1.BestEffortRequest, o CreateOptions) (v1.BestEffort, error) {
	return answer[v1.BestEffort](ctx, c, call{method: http.MethodPost, path: bestEffortPath, body: req, key: o.IdempotencyKey})
}

// BestEffortFilter selects best-effort requests.
type BestEffortFilter struct {
	All bool // includes requests that are over
	// ProjectID and AllProjects are for admins; without them the list has the caller's own
	// project.
	ProjectID   string
	AllProjects bool
	PageSize    int // 0 is Almanac's default
}

// ListBestEffort returns best-effort requests in the order of their submission, as pages does.
func (c *Client) ListBestEffort(ctx context.Context, f BestEffortFilter) iter.Seq2[v1.BestEffort, error] {
	query := url.Values{}
	set(query, "project_id", f.ProjectID)
	setFlag(query, "all", f.All)
	setFlag(query, "all_projects", f.AllProjects)
	return pages(ctx, c, bestEffortPath, query, f.PageSize, func(page v1.BestEfforts) ([]v1.BestEffort, string) {
		return page.Requests, string(page.Next)
	})
}

// BestEffort returns one request.
func (c *Client) BestEffort(ctx context.Context, id string) (v1.BestEffort, error) {
	return answer[v1.BestEffort](ctx, c, call{method: http.MethodGet, path: bestEffortPath, id: &id})
}

// CancelBestEffort cancels a request; Almanac deletes its servers.
func (c *Client) CancelBestEffort(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: bestEffortPath, id: &id})
}
