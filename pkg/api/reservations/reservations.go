// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"context"
	"math"
	"net/http"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// create handles POST /v1/reservations.
func (s API) create(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	var body v1.ReservationRequest
	raw, err := c.Body(&body, serving.ReservationBody)
	if err != nil {
		return nil, err
	}
	request, err := s.request(body)
	if err != nil {
		return nil, err
	}
	by := c.Asker()
	if request.Maintenance {
		if err := by.Check(maintainRule, by.ProjectID); err != nil {
			return nil, err
		}
	}
	if request, err = s.resolve(c.Request.Context(), request, by.ProjectID); err != nil {
		return nil, err
	}
	if dryRun {
		plan, err := s.Booker.Offer(c.Request.Context(), by.Caller(), request)
		if err != nil {
			return nil, err
		}
		return v1.OfferAnswer{Offer: s.withServers(offer(plan, by.ProjectID, false, by), plan, by)}, nil
	}
	use, err := c.KeyUse(raw)
	if err != nil {
		return nil, err
	}
	ctx, end := c.Awaited()
	defer end()
	r, err := s.Booker.Book(ctx, by.Caller(), request, use)
	if err != nil {
		return nil, serving.InDoubt(err, adviceOn(use))
	}
	c.Header("Location", "/v1/reservations/"+r.ID)
	c.Status(http.StatusCreated)
	c.SetVersion(r.VersionText())
	return s.placed(presented(r, by)), nil
}

// Advice for clients when the result of a request is unknown.
const (
	bookingInDoubt = "the reservation may exist anyway: look at the list before you send the request again"
	retryInDoubt   = "the reservation may exist anyway: send the request again with the same Idempotency-Key, which never creates a second one"
	changeInDoubt  = "the change may have been made anyway: look at the reservation before you send the request again"
	cancelInDoubt  = "the reservation may be canceled anyway: look at it before you send the request again"
)

func adviceOn(use *booking.KeyUse) string {
	if use != nil {
		return retryInDoubt
	}
	return bookingInDoubt
}

// mostIDs is the largest number of reservations that a request for a list may name.
const mostIDs = 100

// list handles GET /v1/reservations.
func (s API) list(c *serving.Call) (any, error) {
	q := c.Parameters("limit", "marker", "status", "id", "lease_id", "series_id", "name", "kind", "maintenance", "project_id", "all_projects", "start", "end")
	by := c.Asker()
	selection := reservation.Query{
		IDs: q.List("id"), LeaseID: q.Text("lease_id"), SeriesID: q.Text("series_id"), Name: q.Text("name"), Kind: reservation.Kind(q.Text("kind")),
		Marker: q.Text("marker"), Limit: q.Number("limit", serving.DefaultPage, 1, serving.LargestPage) + 1,
	}
	if q.Has("maintenance") {
		selection.Maintenance = new(q.Truth("maintenance"))
	}
	if q.Has("start") || q.Has("end") {
		selection.Overlaps = q.Window(math.MinInt64, math.MaxInt64)
	}
	for _, status := range q.List("status") {
		if !slices.Contains(reservation.Statuses, reservation.Status(status)) {
			q.Fail("status", "%s", fault.Unknown("status", status, reservation.Statuses))
		}
		selection.Statuses = append(selection.Statuses, reservation.Status(status))
	}
	if n := len(selection.IDs); n > mostIDs {
		q.Fail("id", "has %d ids; at most %d are allowed", n, mostIDs)
	}
	if q.Has("kind") && !slices.Contains(reservation.Kinds, selection.Kind) {
		q.Fail("kind", "%s", fault.Unknown("kind", q.Text("kind"), reservation.Kinds))
	}
	var err error
	if selection.ProjectID, err = q.Project(by, "reservations:list"); err != nil {
		return nil, err
	}
	found, err := s.Reader.List(c.Request.Context(), selection)
	if err != nil {
		return nil, err
	}
	page := v1.Reservations{Reservations: []v1.Reservation{}}
	if len(found) == selection.Limit {
		found = found[:len(found)-1]
		page.Next = v1.Marker(found[len(found)-1].ID)
	}
	return serving.Later(func() (any, error) {
		for _, r := range found {
			page.Reservations = append(page.Reservations, s.placed(presented(r, by)))
		}
		return page, nil
	}), nil
}

// show handles GET /v1/reservations/{id}.
func (s API) show(c *serving.Call) (any, error) {
	r, by := found(c), c.Asker()
	c.SetVersion(r.VersionText())
	r.Together.Broken = !s.Asked.Lies(r)
	if r.Status == reservation.Waiting {
		return s.withNextStart(c.Request.Context(), s.placed(presented(r, by)), r), nil
	}
	return s.withProblems(s.withImages(presented(r, by), r, by), &r, by), nil
}

// placed adds the place of a reservation that waits.
func (s API) placed(out v1.Reservation) v1.Reservation {
	if out.Waiting != nil {
		out.Waiting.Place, out.Waiting.Of = s.Line.Line(out.ID)
	}
	return out
}

// withNextStart adds the first start after the window of a reservation that waits at which there is room. Its owner can do without it, so a
// search that fails is none.
func (s API) withNextStart(ctx context.Context, out v1.Reservation, r reservation.Reservation) v1.Reservation {
	if at, err := s.Line.NextRoom(ctx, r); err == nil && out.Waiting != nil {
		out.Waiting.NextStart = v1.TimeOf(at)
	}
	return out
}

// withProblems adds the problems of a degraded reservation's hosts, for callers that may see them.
// All others see only that a host accepts no instances.
func (s API) withProblems(out v1.Reservation, r *reservation.Reservation, by *serving.Asker) v1.Reservation {
	if r.Degraded == "" || !r.Status.Live() || !by.May("hosts:get_instances", by.ProjectID) {
		return out
	}
	snapshot := s.Snapshot()
	for _, name := range out.Hosts {
		if i, known := snapshot.Index(name); known {
			if problem := snapshot.Host(i).Failure(); problem != "" {
				out.DegradedReason += "; " + name + ": " + problem
			}
		}
	}
	return out
}

// change handles PATCH /v1/reservations/{id}.
func (s API) change(c *serving.Call) (any, error) {
	q := c.Parameters("dry_run")
	dryRun := q.Truth("dry_run")
	if q.Err != nil {
		return nil, q.Err
	}
	var body v1.ReservationChange
	if _, err := c.Body(&body, serving.ReservationBody); err != nil {
		return nil, whyFixed(err)
	}
	if body.Name != nil && *body.Name != found(c).Name {
		if err := checkName(*body.Name); err != nil {
			return nil, err
		}
	}
	change := changeOf(body)
	by, before := c.Asker(), found(c)
	if err := c.Expect("reservation", before.VersionText()); err != nil {
		return nil, err
	}
	if dryRun {
		plan, err := s.Changer.OfferChange(c.Request.Context(), serving.ChangerOf(c, &before), before.ID, change)
		if err != nil {
			return nil, err
		}
		return v1.OfferAnswer{Offer: offer(plan, before.ProjectID, serving.Begun(&before), by)}, nil
	}
	ctx, end := c.Awaited()
	defer end()
	r, err := s.Changer.Change(ctx, serving.ChangerOf(c, &before), before.ID, change)
	if err != nil {
		return nil, serving.InDoubt(err, changeInDoubt)
	}
	c.SetVersion(r.VersionText())
	return s.placed(presented(r, by)), nil
}
