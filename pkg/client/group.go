// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const groupsPath = "/v1/groups"

// CreateGroup books several reservations with the same times: all of them or none. It is sent once: after an error without
// an answer, ListGroups tells whether it was done.
func (c *Client) CreateGroup(ctx context.Context, req v1.GroupRequest) (v1.Group, error) {
	return answer[v1.Group](ctx, c, call{method: http.MethodPost, path: groupsPath, body: req})
}

// OfferGroup returns what CreateGroup would book, and books nothing.
func (c *Client) OfferGroup(ctx context.Context, req v1.GroupRequest) (v1.GroupOffer, error) {
	offered, err := answer[v1.GroupOfferAnswer](ctx, c, call{method: http.MethodPost, path: groupsPath, query: dryRun(), body: req})
	return offered.Offer, err
}

// GroupFilter selects groups; a zero field selects all.
type GroupFilter struct {
	Name string // exact
	// ProjectID and AllProjects are for admins; without them the list has the caller's own project.
	ProjectID   string
	AllProjects bool
	PageSize    int // at most 50; 0 is Almanac's default
}

// ListGroups iterates over the groups, sorted by start, then id, as pages does.
func (c *Client) ListGroups(ctx context.Context, f GroupFilter) iter.Seq2[v1.Group, error] {
	query := url.Values{}
	set(query, "name", f.Name)
	set(query, "project_id", f.ProjectID)
	setFlag(query, "all_projects", f.AllProjects)
	return pages(ctx, c, groupsPath, query, f.PageSize, func(page v1.Groups) ([]v1.Group, string) { return page.Groups, string(page.Next) })
}

// GetGroup returns one group, whose id is the lease_id of its reservations.
func (c *Client) GetGroup(ctx context.Context, id string) (v1.Group, error) {
	return answer[v1.Group](ctx, c, call{method: http.MethodGet, path: groupsPath, id: &id})
}

// ChangeGroup changes the fields that are set for all reservations of a group. A refused change leaves them as they were.
func (c *Client) ChangeGroup(ctx context.Context, id string, change v1.GroupChange) (v1.Group, error) {
	return answer[v1.Group](ctx, c, call{method: http.MethodPatch, path: groupsPath, id: &id, body: change})
}

// OfferGroupChange returns what ChangeGroup would book, and changes nothing.
func (c *Client) OfferGroupChange(ctx context.Context, id string, change v1.GroupChange) (v1.GroupOffer, error) {
	offered, err := answer[v1.GroupOfferAnswer](ctx, c, call{method: http.MethodPatch, path: groupsPath, id: &id, query: dryRun(), body: change})
	return offered.Offer, err
}

// DeleteGroup cancels all reservations of a group.
func (c *Client) DeleteGroup(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: groupsPath, id: &id})
}

// OfferGroupDeletion returns what DeleteGroup would do to each reservation, and cancels nothing.
func (c *Client) OfferGroupDeletion(ctx context.Context, id string) (v1.GroupCancellation, error) {
	return answer[v1.GroupCancellation](ctx, c, call{method: http.MethodDelete, path: groupsPath, id: &id, query: dryRun()})
}
