// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/gin-gonic/gin"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// defaultView is how many seconds the calendar and the availability cover if a request has no end.
const defaultView = 7 * 24 * 3600

const mostWindows = 1000

// availability handles GET /v1/availability.
func (s *server) availability(c *gin.Context) (any, error) {
	q := readQuery(c, "quantity", "duration", "start", "end", "host_properties")
	now := s.Now()
	request := reservation.Request{Duration: q.seconds("duration"), Start: q.time("start")}
	request.End = q.window(now, defaultView).End
	if q.time("end") == 0 && request.Duration >= defaultView {
		request.End = 0 // the window lasts as long, from the instant at which the service looks
	}
	request.Quantity = q.number("quantity", 1, 1, 1<<31-1)
	request.HostProperties = q.text("host_properties")
	if request.Duration <= 0 {
		q.fail("duration", "is required, at least one second: how long the hosts must be free, such as 2h30m")
	}
	if request.Start != 0 && request.Start < now.Add(-planning.LatestPast) {
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

// calendar handles GET /v1/calendar.
func (s *server) calendar(c *gin.Context) {
	v, err := s.calendarView(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	asked := c.Request.Header.Values("If-None-Match")
	v.marks = s.Booking.Fingerprint()
	if tag, known := s.tags.Get(v.key()); known && holds(asked, tag) { // nothing at all has changed
		c.Header("ETag", tag)
		sendNotModified(c)
		return
	}
	page, err := s.calendarPage(c.Request.Context(), v)
	if err != nil {
		s.fail(c, err)
		return
	}
	tag := v.tag(page)
	s.tags.Add(v.key(), tag)
	c.Header("ETag", tag)
	if holds(asked, tag) {
		sendNotModified(c)
	} else if err := sendCompressed(c, "application/json; charset=utf-8", page); err != nil {
		s.fail(c, err)
	}
}

// knows reports whether a caller may learn which hosts a reservation has.
func knows(by *asker, r *reservation.Reservation) bool {
	known := r.BelongsTo(by.ProjectID) || by.may("reservations:get_all_projects", r.ProjectID)
	return known && seesHosts(r, by)
}
