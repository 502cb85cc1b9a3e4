package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// defaultView is how many seconds the calendar and the availability cover if a request has no end.
const defaultView = 7 * 24 * 3600

const mostWindows = 1000

// availability handles GET /v1/availability.
func (s *server) availability(c *gin.Context) (any, error) {
	q := readQuery(c, "quantity", "duration", "start", "end", "host_properties")
	now := s.Now()
	request := reservation.Request{Duration: q.seconds("duration"), Start: q.time("start")}
	request.End = q.window(now, max(defaultView, request.Duration)).End
	request.Quantity = q.number("quantity", 1, 1, 1<<31-1)
	request.HostProperties = q.text("host_properties")
	if request.Duration <= 0 {
		q.fail("duration", "is required, at least one second: how long the hosts must be free, such as 2h30m")
	}
	if request.Start != 0 && request.Start < now {
		q.fail("start", "%v lies in the past; it is now %v", request.Start, now)
	}
	if q.err != nil {
		return nil, q.err
	}
	by := asking(c)
	filter, err := inventory.ParseFilter([]byte(request.HostProperties), s.Inventory.Snapshot(), by.seesHidden())
	if err != nil {
		return nil, err
	}
	windows, matched, err := s.Booking.Availability(c.Request.Context(), by.caller(), request, mostWindows)
	if err != nil {
		return nil, err
	}
	answer := v1.Availability{Matched: matched, Windows: []v1.Window{}, UnknownProperties: filter.Unknown()}
	for _, w := range windows {
		answer.Windows = append(answer.Windows, v1.Window{
			Start: w.Start.Time(), LatestStart: w.LatestStart.Time(), End: w.LatestStart.Add(request.Duration).Time(), Free: w.Free,
		})
	}
	return answer, nil
}

// calendar handles GET /v1/calendar: the claims of live reservations on each host.
func (s *server) calendar(c *gin.Context) {
	q := readQuery(c, "start", "end", "host")
	w, asked := q.window(s.Now(), defaultView), q.list("host")
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	by := asking(c)
	var page bytes.Buffer
	var err error
	turnErr := s.Booking.InTurn(c.Request.Context(), by.ProjectID, func() { err = s.writeCalendar(&page, w, asked, by) })
	if err := cmp.Or(turnErr, err); err != nil {
		s.fail(c, err)
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", page.Bytes())
}

// writeCalendar writes the answer of calendar. It fails with an Invalid fault for an unknown host.
func (s *server) writeCalendar(to io.Writer, w span.Span, asked []string, by *asker) error {
	claims := s.claims(w, by)
	known := slices.Sorted(maps.Keys(claims))
	for _, host := range asked {
		if claims[host] == nil {
			return fault.Field("host", "%s", fault.Unknown("host", host, known))
		}
	}
	answer := v1.Calendar{Start: w.Start.Time(), End: w.End.Time(), Hosts: []v1.HostCalendar{}}
	for _, host := range known {
		if len(asked) == 0 || slices.Contains(asked, host) {
			answer.Hosts = append(answer.Hosts, v1.HostCalendar{Host: host, Claims: claims[host]})
		}
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("write the calendar: %w", err)
	}
	return nil
}

// claims returns the claims on each host in w, by the name of the host and sorted by start; the
// list of a free host is empty.
func (s *server) claims(w span.Span, by *asker) map[string][]v1.Claim {
	claims := make(map[string][]v1.Claim)
	for _, h := range s.Inventory.Snapshot().Hosts() {
		claims[h.Name] = []v1.Claim{}
	}
	for _, r := range s.Booking.Live(w) {
		for _, claim := range r.Claims {
			if claim.Span.Overlaps(w) {
				claims[claim.Host] = append(claims[claim.Host], presentedClaim(&r, claim.Span, claim.Slices, by))
			}
		}
	}
	for _, list := range claims {
		slices.SortStableFunc(list, func(a, b v1.Claim) int { return a.Start.Compare(b.Start) })
	}
	return claims
}

// presentedClaim returns a claim; it names the reservation only for callers that may see it.
func presentedClaim(r *reservation.Reservation, w span.Span, slices int, by *asker) v1.Claim {
	claim := v1.Claim{Start: w.Start.Time(), End: w.End.Time(), Kind: string(r.Kind), Instances: slices}
	if knows(by, r) {
		claim.ReservationID, claim.Name, claim.ProjectID = r.ID, r.Name, r.ProjectID
	}
	return claim
}

// knows reports whether a caller may learn which hosts a reservation has.
func knows(by *asker, r *reservation.Reservation) bool {
	known := r.ProjectID == by.ProjectID || by.may("reservations:get_all_projects", r.ProjectID)
	return known && seesHosts(r, by)
}
