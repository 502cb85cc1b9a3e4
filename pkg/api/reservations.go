// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const (
	defaultPage = 100
	largestPage = 1000
	longestKey  = 255
)

// maintainRule is the rule about who plans, changes and cancels maintenance.
const maintainRule = "reservations:maintain"

// createReservation handles POST /v1/reservations.
func (s *server) createReservation(c *gin.Context) (any, error) {
	q := readQuery(c, "dry_run")
	dryRun := q.truth("dry_run")
	if q.err != nil {
		return nil, q.err
	}
	var body v1.ReservationRequest
	raw, err := s.body(c, &body, reservationBody)
	if err != nil {
		return nil, err
	}
	request, err := s.request(body)
	if err != nil {
		return nil, err
	}
	by := asking(c)
	if request.Maintenance {
		if err := by.check(maintainRule, by.ProjectID); err != nil {
			return nil, err
		}
	}
	if request, err = s.resolve(c.Request.Context(), request, by.ProjectID); err != nil {
		return nil, err
	}
	if dryRun {
		plan, err := s.Booking.Offer(c.Request.Context(), by.caller(), request)
		if err != nil {
			return nil, err
		}
		return v1.OfferAnswer{Offer: s.withServers(offer(plan, by.ProjectID, false, by), plan, by)}, nil
	}
	use, err := keyUse(c, raw)
	if err != nil {
		return nil, err
	}
	ctx, end := awaited(c)
	defer end()
	r, err := s.Booking.Book(ctx, by.caller(), request, use)
	if err != nil {
		return nil, inDoubt(err, adviceOn(use))
	}
	c.Header("Location", "/v1/reservations/"+r.ID)
	c.Status(http.StatusCreated)
	return presented(r, by), nil
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

// inDoubt adds the advice to an error after which it is unknown whether a change was stored; see
// booking.Records.
func inDoubt(err error, advice string) error {
	if !doubtful(err) {
		return err
	}
	f := *fault.Of(err)
	if f.Kind == fault.Internal {
		f = fault.Error{Kind: fault.Unavailable, Message: "this took too long", RetryAfter: overloaded}
	}
	f.Message, f.Err = f.Message+"; "+advice, err
	return &f
}

// doubtful reports whether it is unknown, after an error, whether a change was stored.
func doubtful(err error) bool {
	return (fault.Is(err, fault.Unavailable) || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, reservation.ErrStale)
}

// keyUse returns the idempotency key of the request; nil if it has none.
func keyUse(c *gin.Context, body []byte) (*booking.KeyUse, error) {
	key := c.GetHeader("Idempotency-Key")
	if key == "" {
		return nil, nil
	}
	if len(key) > longestKey {
		return nil, fault.Field("Idempotency-Key", "has more than %d characters", longestKey)
	}
	hash := sha256.Sum256(canonical(body))
	return &booking.KeyUse{Key: key, BodyHash: hex.EncodeToString(hash[:])}, nil
}

// canonical returns JSON in one canonical form, so that a retry with the same content has the same
// hash.
func canonical(body []byte) []byte {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return body
	}
	text, err := json.Marshal(value)
	if err != nil {
		return body
	}
	return text
}

// listReservations handles GET /v1/reservations.
func (s *server) listReservations(c *gin.Context) (any, error) {
	q := readQuery(c, "limit", "marker", "status", "name", "kind", "maintenance", "project_id", "all_projects", "start", "end")
	by := asking(c)
	selection := reservation.Query{
		Name: q.text("name"), Kind: reservation.Kind(q.text("kind")),
		Marker: q.text("marker"), Limit: q.number("limit", defaultPage, 1, largestPage) + 1,
	}
	if q.values.Has("maintenance") {
		selection.Maintenance = new(q.truth("maintenance"))
	}
	if q.values.Has("start") || q.values.Has("end") {
		selection.Overlaps = q.window(math.MinInt64, math.MaxInt64)
	}
	for _, status := range q.list("status") {
		if !slices.Contains(reservation.Statuses, reservation.Status(status)) {
			q.fail("status", "%s", fault.Unknown("status", status, reservation.Statuses))
		}
		selection.Statuses = append(selection.Statuses, reservation.Status(status))
	}
	if q.values.Has("kind") && !slices.Contains(reservation.Kinds, selection.Kind) {
		q.fail("kind", "%s", fault.Unknown("kind", q.text("kind"), reservation.Kinds))
	}
	var err error
	if selection.ProjectID, err = q.project(by, "reservations:list"); err != nil {
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
	return later(func() (any, error) {
		for _, r := range found {
			page.Reservations = append(page.Reservations, presented(r, by))
		}
		return page, nil
	}), nil
}

// showReservation handles GET /v1/reservations/{id}.
func (s *server) showReservation(c *gin.Context) (any, error) {
	r, by := found(c), asking(c)
	return s.withProblems(s.withImages(presented(r, by), r, by), &r, by), nil
}

// withProblems adds the problems of a degraded reservation's hosts, for callers that may see them.
// All others see only that a host accepts no instances.
func (s *server) withProblems(out v1.Reservation, r *reservation.Reservation, by *asker) v1.Reservation {
	if r.Degraded == "" || !r.Status.Live() || !by.may("hosts:get_instances", by.ProjectID) {
		return out
	}
	snapshot := s.Inventory.Snapshot()
	for _, name := range out.Hosts {
		if i, known := snapshot.Index(name); known {
			if problem := snapshot.Host(i).Failure(); problem != "" {
				out.DegradedReason += "; " + name + ": " + problem
			}
		}
	}
	return out
}

// changeReservation handles PATCH /v1/reservations/{id}.
func (s *server) changeReservation(c *gin.Context) (any, error) {
	q := readQuery(c, "dry_run")
	dryRun := q.truth("dry_run")
	if q.err != nil {
		return nil, q.err
	}
	var body v1.ReservationChange
	if _, err := s.body(c, &body, reservationBody); err != nil {
		return nil, err
	}
	if body.Name != nil && *body.Name != found(c).Name {
		if err := checkName(*body.Name); err != nil {
			return nil, err
		}
	}
	change := planning.Change{Name: body.Name, Quantity: body.Quantity, Start: instant(body.StartTime), End: instant(body.EndTime)}
	by, before := asking(c), found(c)
	if dryRun {
		plan, err := s.Booking.OfferChange(c.Request.Context(), by.callerFor(&before), before.ID, change)
		if err != nil {
			return nil, err
		}
		return v1.OfferAnswer{Offer: offer(plan, before.ProjectID, begun(&before), by)}, nil
	}
	ctx, end := awaited(c)
	defer end()
	r, err := s.Booking.Change(ctx, by.callerFor(&before), before.ID, change)
	if err != nil {
		return nil, inDoubt(err, changeInDoubt)
	}
	return presented(r, by), nil
}
