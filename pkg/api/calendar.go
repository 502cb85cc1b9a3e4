package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// defaultView is how far the calendar and the availability look without an end.
const defaultView = 7 * 24 * 3600

const mostWindows = 1000

// availability handles GET /v1/availability.
func (s *server) availability(c *gin.Context) {
	q := readQuery(c, "quantity", "duration", "start", "end", "host_properties")
	now := s.Now()
	request := reservation.Request{Duration: q.seconds("duration"), Start: q.time("start"), End: q.time("end")}
	request.Quantity = q.number("quantity", 1, 1, 1<<31-1)
	request.HostProperties = q.text("host_properties")
	if request.Duration <= 0 {
		q.fail("duration", "is needed: how long the hosts should be free, such as 2h30m")
	}
	if request.End == 0 {
		request.End = max(request.Start, now).Add(max(defaultView, request.Duration))
	}
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	windows, matched, err := s.Desk.Availability(caller(c), request, mostWindows)
	if err != nil {
		s.fail(c, err)
		return
	}
	answer := v1.Availability{Matched: matched, Windows: []v1.Window{}}
	for _, w := range windows {
		answer.Windows = append(answer.Windows, v1.Window{
			Start: w.Start.Time(), LatestStart: w.LatestStart.Time(), End: w.LatestStart.Add(request.Duration).Time(), Free: w.Free,
		})
	}
	c.PureJSON(http.StatusOK, answer)
}

// calendar handles GET /v1/calendar: the claims of live reservations on each host.
func (s *server) calendar(c *gin.Context) {
	q := readQuery(c, "start", "end", "host")
	w := q.window(s.Now(), defaultView)
	if q.err != nil {
		s.fail(c, q.err)
		return
	}
	by, asked := caller(c), q.list("host")
	claims := make(map[string][]v1.Claim)
	for _, h := range s.Inventory.Snapshot().Hosts() {
		claims[h.Name] = []v1.Claim{}
	}
	for _, r := range s.Desk.Live(w) {
		for _, claim := range r.Claims {
			if claim.Span.Overlaps(w) {
				claims[claim.Host] = append(claims[claim.Host], presentedClaim(&r, claim.Span, claim.Slices, by))
			}
		}
	}
	answer := v1.Calendar{Start: w.Start.Time(), End: w.End.Time(), Hosts: []v1.HostCalendar{}}
	for host, list := range claims {
		if len(asked) == 0 || slices.Contains(asked, host) {
			slices.SortStableFunc(list, func(a, b v1.Claim) int { return a.Start.Compare(b.Start) })
			answer.Hosts = append(answer.Hosts, v1.HostCalendar{Host: host, Claims: list})
		}
	}
	slices.SortFunc(answer.Hosts, func(a, b v1.HostCalendar) int {
		if a.Host < b.Host {
			return -1
		}
		return 1
	})
	c.PureJSON(http.StatusOK, answer)
}

// presentedClaim names the reservation only to those who may see it.
func presentedClaim(r *reservation.Reservation, w span.Span, slices int, by booking.Caller) v1.Claim {
	claim := v1.Claim{Start: w.Start.Time(), End: w.End.Time(), Kind: string(r.Kind), Instances: slices}
	if by.Admin || r.ProjectID == by.ProjectID && r.Status != reservation.Pending {
		claim.ReservationID, claim.Name, claim.ProjectID = r.ID, r.Name, r.ProjectID
	}
	return claim
}
