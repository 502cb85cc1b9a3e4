// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const webhooksPath = "/v1/webhooks"

// CreateWebhook lets a URL be told of changes. Its answer has the secret, which no other has. It is sent once: after an error
// without an answer, ListWebhooks tells whether it was done.
func (c *Client) CreateWebhook(ctx context.Context, req v1.WebhookRequest) (v1.Webhook, error) {
	return answer[v1.Webhook](ctx, c, call{method: http.MethodPost, path: webhooksPath, body: req})
}

// WebhookFilter selects webhooks; a zero field selects all.
type WebhookFilter struct {
	// ProjectID and AllProjects are for admins; without them the list has the caller's own project.
	ProjectID   string
	AllProjects bool
	PageSize    int // 0 is Almanac's default
}

// ListWebhooks iterates over the webhooks, the oldest first, as pages does.
func (c *Client) ListWebhooks(ctx context.Context, f WebhookFilter) iter.Seq2[v1.Webhook, error] {
	query := url.Values{}
	set(query, "project_id", f.ProjectID)
	setFlag(query, "all_projects", f.AllProjects)
	return pages(ctx, c, webhooksPath, query, f.PageSize, func(page v1.Webhooks) ([]v1.Webhook, string) { return page.Webhooks, string(page.Next) })
}

// GetWebhook returns one webhook, with what has become of its deliveries.
func (c *Client) GetWebhook(ctx context.Context, id string) (v1.Webhook, error) {
	return answer[v1.Webhook](ctx, c, call{method: http.MethodGet, path: webhooksPath, id: &id})
}

// DeleteWebhook deletes a webhook, and what waits for it.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: webhooksPath, id: &id})
}
