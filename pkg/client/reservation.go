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

// CreateOptions go with a booking.
type CreateOptions struct {
	// IdempotencyKey makes it safe to send the booking again: the same key gives
	// the same reservation. Without one the booking is sent once.
	IdempotencyKey string
}

// CreateReservation books.
func (c *Client) CreateReservation(ctx context.Context, req v1.ReservationRequest, o CreateOptions) (v1.Reservation, error) {
	var made v1.Reservation
	err := c.do(ctx, call{
		method: http.MethodPost, path: "/v1/reservations", body: req, key: o.IdempotencyKey, into: &made,
	})
	return made, err
}

// OfferReservation says what CreateReservation would do, without doing it.
func (c *Client) OfferReservation(ctx context.Context, req v1.ReservationRequest) (v1.Offer, error) {
	var answer v1.OfferAnswer
	err := c.do(ctx, call{
		method: http.MethodPost, path: "/v1/reservations", query: dryRun(), body: req, into: &answer,
	})
	return answer.Offer, err
}

// ReservationFilter selects reservations; what is zero selects all.
type ReservationFilter struct {
	Statuses []string // the default of Almanac is every status but cancelled
	Name     string   // exactly
	Kind     string
	// ProjectID and AllProjects are for admins; without them the list has the
	// caller's own project.
	ProjectID   string
	AllProjects bool
	// PageSize is how many reservations to ask for at once; 0 leaves it to Almanac.
	PageSize int
}

// ListReservations gives the reservations by start, then id. Pages are fetched
// as they are needed. After an error nothing more is given.
func (c *Client) ListReservations(ctx context.Context, f ReservationFilter) iter.Seq2[v1.Reservation, error] {
	query := url.Values{}
	set(query, "status", strings.Join(f.Statuses, ","))
	set(query, "name", f.Name)
	set(query, "kind", f.Kind)
	set(query, "project_id", f.ProjectID)
	if f.AllProjects {
		query.Set("all_projects", "true")
	}
	return pages(query, f.PageSize, func(query url.Values) ([]v1.Reservation, string, error) {
		var page v1.Reservations
		err := c.do(ctx, call{method: http.MethodGet, path: "/v1/reservations", query: query, into: &page})
		return page.Reservations, string(page.Next), err
	})
}

// GetReservation gives one reservation.
func (c *Client) GetReservation(ctx context.Context, id string) (v1.Reservation, error) {
	var found v1.Reservation
	path, err := member("/v1/reservations/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodGet, path: path, into: &found})
	}
	return found, err
}

// ChangeReservation changes what is given. A change that is refused leaves the
// reservation as it was.
func (c *Client) ChangeReservation(ctx context.Context, id string, change v1.ReservationChange) (v1.Reservation, error) {
	var changed v1.Reservation
	path, err := member("/v1/reservations/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPatch, path: path, body: change, into: &changed})
	}
	return changed, err
}

// OfferChange says what ChangeReservation would do, without doing it.
func (c *Client) OfferChange(ctx context.Context, id string, change v1.ReservationChange) (v1.Offer, error) {
	var answer v1.OfferAnswer
	path, err := member("/v1/reservations/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodPatch, path: path, query: dryRun(), body: change, into: &answer})
	}
	return answer.Offer, err
}

// DeleteReservation cancels.
func (c *Client) DeleteReservation(ctx context.Context, id string) error {
	path, err := member("/v1/reservations/", "id", id)
	if err != nil {
		return err
	}
	return c.do(ctx, call{method: http.MethodDelete, path: path})
}

// OfferDeletion says what DeleteReservation would do, without doing it.
func (c *Client) OfferDeletion(ctx context.Context, id string) (v1.Cancellation, error) {
	var answer v1.CancellationAnswer
	path, err := member("/v1/reservations/", "id", id)
	if err == nil {
		err = c.do(ctx, call{method: http.MethodDelete, path: path, query: dryRun(), into: &answer})
	}
	return answer.Cancellation, err
}

// AvailabilityQuery asks when Quantity hosts that pass HostProperties (JSON;
// empty is every host) are free for Duration. A zero Start or End is left to
// Almanac.
type AvailabilityQuery struct {
	Quantity       int
	Duration       v1.Duration
	Start, End     time.Time
	HostProperties string
}

// Availability gives the windows in which a reservation would be accepted.
func (c *Client) Availability(ctx context.Context, q AvailabilityQuery) (v1.Availability, error) {
	query := url.Values{
		"quantity": {strconv.Itoa(q.Quantity)},
		"duration": {strconv.FormatInt(int64(q.Duration), 10)},
	}
	setTime(query, "start", q.Start)
	setTime(query, "end", q.End)
	set(query, "host_properties", q.HostProperties)
	var windows v1.Availability
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/availability", query: query, into: &windows})
	return windows, err
}

func dryRun() url.Values { return url.Values{"dry_run": {"true"}} }
