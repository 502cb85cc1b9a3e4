// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const reservationsPath = "/v1/reservations"

// CreateOptions accompany a call that creates something.
type CreateOptions struct {
	// IdempotencyKey makes it safe to send the call again: the same key returns what the
	// first call created. A call without one is sent once.
	IdempotencyKey string
}

// CreateReservation books a reservation.
func (c *Client) CreateReservation(ctx context.Context, req v1.ReservationRequest, o CreateOptions) (v1.Reservation, error) {
	return answer[v1.Reservation](ctx, c, call{method: http.MethodPost, path: reservationsPath, body: req, key: o.IdempotencyKey})
}

// OfferReservation returns what CreateReservation would book, and books nothing.
func (c *Client) OfferReservation(ctx context.Context, req v1.ReservationRequest) (v1.Offer, error) {
	offered, err := answer[v1.OfferAnswer](ctx, c, call{method: http.MethodPost, path: reservationsPath, query: dryRun(), body: req})
	return offered.Offer, err
}

// ReservationFilter selects reservations; a zero field selects all.
type ReservationFilter struct {
	Statuses []string // Almanac's default is every status except the canceled ones
	IDs      []string // at most 100; empty selects every id
	LeaseID  string   // of the group to which they belong
	SeriesID string   // of the series to which they belong
	Name     string   // exact
	Kind     string
	// Maintenance selects only maintenance, or only what is none; nil selects both.
	Maintenance *bool
	// ProjectID and AllProjects are for admins; without them the list has the caller's own
	// project.
	ProjectID   string
	AllProjects bool
	PageSize    int // 0 is Almanac's default
}

// ListReservations iterates over the reservations, sorted by start, then id, as pages does.
func (c *Client) ListReservations(ctx context.Context, f ReservationFilter) iter.Seq2[v1.Reservation, error] {
	query := url.Values{}
	set(query, "status", strings.Join(f.Statuses, ","))
	set(query, "id", strings.Join(f.IDs, ","))
	set(query, "lease_id", f.LeaseID)
	set(query, "series_id", f.SeriesID)
	set(query, "name", f.Name)
	set(query, "kind", f.Kind)
	if f.Maintenance != nil {
		set(query, "maintenance", strconv.FormatBool(*f.Maintenance))
	}
	set(query, "project_id", f.ProjectID)
	setFlag(query, "all_projects", f.AllProjects)
	return pages(ctx, c, reservationsPath, query, f.PageSize, func(page v1.Reservations) ([]v1.Reservation, string) {
		return page.Reservations, string(page.Next)
	})
}

// GetReservation returns one reservation.
func (c *Client) GetReservation(ctx context.Context, id string) (v1.Reservation, error) {
	return answer[v1.Reservation](ctx, c, call{method: http.MethodGet, path: reservationsPath, id: &id})
}

// ChangeReservation changes the fields that are set. A refused change leaves the reservation
// as it was.
func (c *Client) ChangeReservation(ctx context.Context, id string, change v1.ReservationChange) (v1.Reservation, error) {
	return answer[v1.Reservation](ctx, c, call{method: http.MethodPatch, path: reservationsPath, id: &id, body: change})
}

// OfferChange returns what ChangeReservation would book, and changes nothing.
func (c *Client) OfferChange(ctx context.Context, id string, change v1.ReservationChange) (v1.Offer, error) {
	offered, err := answer[v1.OfferAnswer](ctx, c, call{method: http.MethodPatch, path: reservationsPath, id: &id, query: dryRun(), body: change})
	return offered.Offer, err
}

// DeleteReservation cancels a reservation.
func (c *Client) DeleteReservation(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: reservationsPath, id: &id})
}

// OfferDeletion returns what DeleteReservation would do, and cancels nothing.
func (c *Client) OfferDeletion(ctx context.Context, id string) (v1.Cancellation, error) {
	offered, err := answer[v1.CancellationAnswer](ctx, c, call{method: http.MethodDelete, path: reservationsPath, id: &id, query: dryRun()})
	return offered.Cancellation, err
}

// AvailabilityQuery asks when Quantity hosts that pass HostProperties (JSON; empty means every
// host) are free for Duration. A zero Start or End is Almanac's default.
type AvailabilityQuery struct {
	Quantity       int
	Duration       v1.Duration
	Start, End     time.Time
	HostProperties string
	// Together is how the hosts must lie; nil means anyhow. It is always required.
	Together *v1.TogetherWish
}

// Availability returns the windows in which Almanac would accept a reservation.
func (c *Client) Availability(ctx context.Context, q AvailabilityQuery) (v1.Availability, error) {
	query := url.Values{
		"quantity": {strconv.Itoa(q.Quantity)},
		"duration": {strconv.FormatInt(int64(q.Duration), 10)},
	}
	setTime(query, "start", q.Start)
	setTime(query, "end", q.End)
	set(query, "host_properties", q.HostProperties)
	if w := q.Together; w != nil {
		set(query, "together_by", w.By)
		set(query, "together_rule", w.Rule)
		if w.Values != 0 {
			set(query, "together_values", strconv.Itoa(w.Values))
		}
		set(query, "apart_from", strings.Join(w.ApartFrom, ","))
	}
	return answer[v1.Availability](ctx, c, call{method: http.MethodGet, path: "/v1/availability", query: query})
}

// Offers returns offers for ranges of quantities and durations, the best first, and books nothing.
func (c *Client) Offers(ctx context.Context, req v1.OffersRequest) (v1.Offers, error) {
	return answer[v1.Offers](ctx, c, call{method: http.MethodPost, path: "/v1/offers", body: req})
}
