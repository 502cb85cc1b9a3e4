// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const seriesPath = "/v1/series"

// CreateSeries books a reservation at each occurrence of a rule: all of them or none, unless the request skips those without room.
// With an IdempotencyKey it is sent again after an error without an answer, as CreateReservation is.
func (c *Client) CreateSeries(ctx context.Context, req v1.SeriesRequest, o CreateOptions) (v1.Series, error) {
	return answer[v1.Series](ctx, c, call{method: http.MethodPost, path: seriesPath, body: req, key: o.IdempotencyKey})
}

// OfferSeries returns what CreateSeries would book, and books nothing.
func (c *Client) OfferSeries(ctx context.Context, req v1.SeriesRequest) (v1.SeriesOffer, error) {
	offered, err := answer[v1.SeriesOfferAnswer](ctx, c, call{method: http.MethodPost, path: seriesPath, query: dryRun(), body: req})
	return offered.Offer, err
}

// SeriesFilter selects series; a zero field selects all.
type SeriesFilter struct {
	// ProjectID and AllProjects are for admins; without them the list has the caller's own project.
	ProjectID   string
	AllProjects bool
	PageSize    int // 0 is Almanac's default
}

// ListSeries iterates over the series without their occurrences, the latest first, as pages does.
func (c *Client) ListSeries(ctx context.Context, f SeriesFilter) iter.Seq2[v1.Series, error] {
	query := url.Values{}
	set(query, "project_id", f.ProjectID)
	setFlag(query, "all_projects", f.AllProjects)
	return pages(ctx, c, seriesPath, query, f.PageSize, func(page v1.SeriesList) ([]v1.Series, string) { return page.Series, string(page.Next) })
}

// GetSeries returns one series, whose id is the series_id of its reservations.
func (c *Client) GetSeries(ctx context.Context, id string) (v1.Series, error) {
	return answer[v1.Series](ctx, c, call{method: http.MethodGet, path: seriesPath, id: &id})
}

// ChangeSeries changes the fields that are set for the reservations of a series that have not begun, from an occurrence on: its
// date, its local time by the rule, or a time in RFC 3339; an empty from selects all. A refused change leaves them as they were.
func (c *Client) ChangeSeries(ctx context.Context, id string, from string, change v1.SeriesChange) (v1.Series, error) {
	return answer[v1.Series](ctx, c, call{method: http.MethodPatch, path: seriesPath, id: &id, query: startingAt(url.Values{}, from), body: change})
}

// OfferSeriesChange returns what ChangeSeries would book, and changes nothing.
func (c *Client) OfferSeriesChange(ctx context.Context, id string, from string, change v1.SeriesChange) (v1.SeriesOffer, error) {
	offered, err := answer[v1.SeriesOfferAnswer](ctx, c, call{method: http.MethodPatch, path: seriesPath, id: &id, query: startingAt(dryRun(), from), body: change})
	return offered.Offer, err
}

// DeleteSeries cancels the reservations of a series that are not over, from an occurrence on; see ChangeSeries.
func (c *Client) DeleteSeries(ctx context.Context, id string, from string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: seriesPath, id: &id, query: startingAt(url.Values{}, from)})
}

// OfferSeriesDeletion returns what DeleteSeries would do to each reservation, and cancels nothing.
func (c *Client) OfferSeriesDeletion(ctx context.Context, id string, from string) (v1.SeriesCancellation, error) {
	return answer[v1.SeriesCancellation](ctx, c, call{method: http.MethodDelete, path: seriesPath, id: &id, query: startingAt(dryRun(), from)})
}

// startingAt returns a query that selects the reservations from an occurrence on.
func startingAt(query url.Values, from string) url.Values {
	set(query, "from", from)
	return query
}
