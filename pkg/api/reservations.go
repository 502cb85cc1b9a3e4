package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const (
	defaultPage = 100
	largestPage = 1000
	longestKey  = 255
)

// createReservation handles POST /v1/reservations.
func (s *server) createReservation(c *gin.Context) {
	q := readQuery(c, "dry_run")
	dryRun := q.truth("dry_run")
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	var body v1.ReservationRequest
	raw, err := s.body(c, &body)
	if err != nil {
		s.fail(c, err)
		return
	}
	request, err := s.request(body)
	if err != nil {
		s.fail(c, err)
		return
	}
	by := caller(c)
	if dryRun {
		plan, err := s.Desk.Offer(by, request)
		if err != nil {
			s.fail(c, err)
			return
		}
		c.PureJSON(http.StatusOK, v1.OfferAnswer{Offer: offer(plan, by.Admin)})
		return
	}
	use, err := keyUse(c, raw)
	if err != nil {
		s.fail(c, err)
		return
	}
	r, err := s.Desk.Book(work(c), by, request, use)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Location", "/v1/reservations/"+r.ID)
	c.PureJSON(http.StatusCreated, presented(r, by))
}

// keyUse gives the idempotency key of the request, nil where it has none.
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

// canonical writes JSON in one way, so that a client that writes its request anew
// for a retry is understood.
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
func (s *server) listReservations(c *gin.Context) {
	q := readQuery(c, "limit", "marker", "status", "name", "kind", "project_id", "all_projects", "start", "end")
	by := caller(c)
	selection := reservation.Query{
		ProjectID: by.ProjectID, Name: q.text("name"), Kind: reservation.Kind(q.text("kind")),
		Marker: q.text("marker"), Limit: q.number("limit", defaultPage, 1, largestPage) + 1,
	}
	if q.values.Has("start") || q.values.Has("end") {
		selection.Overlaps = q.window(math.MinInt64, math.MaxInt64)
	}
	for _, status := range q.list("status") {
		if !slices.Contains(reservation.Statuses, reservation.Status(status)) {
			q.fail("status", "%s", fault.Unknown("status", status, texts(reservation.Statuses)))
		}
		selection.Statuses = append(selection.Statuses, reservation.Status(status))
	}
	if q.values.Has("kind") && !slices.Contains(reservation.Kinds, selection.Kind) {
		q.fail("kind", "%s", fault.Unknown("kind", q.text("kind"), texts(reservation.Kinds)))
	}
	if all, project := q.truth("all_projects"), q.text("project_id"); all || project != "" {
		if !by.Admin && (all || project != by.ProjectID) {
			s.fail(c, fault.New(fault.Denied, "only an admin may list the reservations of other projects"))
			return
		}
		selection.ProjectID = project
	}
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	found, err := s.Reader.List(work(c), selection)
	if err != nil {
		s.fail(c, err)
		return
	}
	page := v1.Reservations{Reservations: []v1.Reservation{}}
	if len(found) == selection.Limit {
		found = found[:len(found)-1]
		page.Next = v1.Marker(found[len(found)-1].ID)
	}
	for _, r := range found {
		page.Reservations = append(page.Reservations, presented(r, by))
	}
	c.PureJSON(http.StatusOK, page)
}

// showReservation handles GET /v1/reservations/{id}.
func (s *server) showReservation(c *gin.Context) {
	r, err := s.Reader.Get(work(c), c.Param("id"))
	by := caller(c)
	if err == nil && !by.Admin && r.ProjectID != by.ProjectID {
		err = booking.NotFound(c.Param("id"))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.PureJSON(http.StatusOK, presented(r, by))
}

// changeReservation handles PATCH /v1/reservations/{id}.
func (s *server) changeReservation(c *gin.Context) {
	q := readQuery(c, "dry_run")
	dryRun := q.truth("dry_run")
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	var body v1.ReservationChange
	if _, err := s.body(c, &body); err != nil {
		s.fail(c, err)
		return
	}
	change := booking.Change{Name: body.Name, Quantity: body.Quantity, Start: instant(body.StartTime), End: instant(body.EndTime)}
	by, id := caller(c), c.Param("id")
	if dryRun {
		plan, err := s.Desk.OfferChange(work(c), by, id, change)
		if err != nil {
			s.fail(c, err)
			return
		}
		c.PureJSON(http.StatusOK, v1.OfferAnswer{Offer: offer(plan, by.Admin)})
		return
	}
	r, err := s.Desk.Change(work(c), by, id, change)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.PureJSON(http.StatusOK, presented(r, by))
}

// deleteReservation handles DELETE /v1/reservations/{id}.
func (s *server) deleteReservation(c *gin.Context) {
	if _, err := s.Desk.Cancel(work(c), caller(c), c.Param("id")); err != nil {
		s.fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}
