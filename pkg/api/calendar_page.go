// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const (
	// mostClaims is the number of claims with which a page of the calendar ends.
	mostClaims = 50_000
	// mostOver is the largest number of reservations that are over that one request may read.
	mostOver = 20_000
)

// overStatuses are those of reservations that hold nothing any more.
var overStatuses = []reservation.Status{reservation.Ended, reservation.Canceled, reservation.Failed}

// calendarPage returns the answer to v, as JSON, and sets v.marks to the version that it contains.
func (s *server) calendarPage(ctx context.Context, v *calendarView) ([]byte, error) {
	reservations, err := s.during(ctx, v)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	turnErr := s.Booking.InTurn(ctx, v.by.ProjectID, func() {
		var answer v1.Calendar
		if answer, err = v.page(reservations); err != nil {
			return
		}
		encoder := json.NewEncoder(&page)
		encoder.SetEscapeHTML(false)
		if err = encoder.Encode(answer); err != nil {
			err = fmt.Errorf("write the calendar: %w", err)
		}
	})
	return page.Bytes(), cmp.Or(turnErr, err)
}

// during returns the reservations whose span overlaps that of v, sorted by start, then id: the live
// ones, and those that are over if v reaches into the past.
func (s *server) during(ctx context.Context, v *calendarView) (list []reservation.Reservation, err error) {
	list, v.marks = s.Booking.LiveMarked(v.span)
	if !v.past {
		return list, nil
	}
	// The live ones come first: a reservation that ends in between is in both lists, and in none the
	// other way round.
	over, err := s.over(ctx, v.span, "")
	if err != nil {
		return nil, err
	}
	return withOver(list, over), nil
}

// over returns the reservations of a project, or of all, that are over and whose span overlaps w.
func (s *server) over(ctx context.Context, w span.Span, project string) ([]reservation.Reservation, error) {
	over, err := s.Reader.List(ctx, reservation.Query{ProjectID: project, Statuses: overStatuses, Overlaps: w, Limit: mostOver + 1})
	if err == nil && len(over) > mostOver {
		err = fault.Field("start", "more than %d reservations that are over overlap the time from %v to %v; ask for a shorter time", mostOver, w.Start, w.End)
	}
	return over, err
}

// withOver returns the reservations of both lists, sorted by start, then id. One that is in both is
// live.
func withOver(live, over []reservation.Reservation) []reservation.Reservation {
	known := make(map[string]bool, len(live))
	for i := range live {
		known[live[i].ID] = true
	}
	for i := range over {
		if !known[over[i].ID] {
			live = append(live, over[i])
		}
	}
	slices.SortFunc(live, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
	})
	return live
}

// claimAt is a claim of a reservation.
type claimAt struct {
	of    int // index of the reservation
	claim *reservation.Claim
}

// page returns the page of the calendar that v asks for. It fails with an Invalid fault for an
// unknown host.
func (v *calendarView) page(reservations []reservation.Reservation) (v1.Calendar, error) {
	claims := claimsByHost(reservations, v.span)
	rows, err := v.rows(claims)
	answer := v1.Calendar{Start: v.span.Start.Time(), End: v.span.End.Time(), Hosts: []v1.HostCalendar{}, UnknownProperties: v.filter.Unknown()}
	if err != nil {
		return answer, err
	}
	visible, count := seenBy(v.by, v.snapshot), 0
	presented := make([]*v1.Claim, len(reservations)) // without times; nil for reservations on other pages
	for _, name := range rows {
		if len(answer.Hosts) == v.limit || count >= mostClaims {
			answer.Next = v1.Marker(answer.Hosts[len(answer.Hosts)-1].Host)
			break
		}
		row := v1.HostCalendar{Host: name, Claims: make([]v1.Claim, 0, len(claims[name]))}
		at, there := v.snapshot.Index(name)
		if there && v.facts {
			row.Facts = v.hostFacts(v.snapshot.Host(at), visible)
		}
		for _, c := range claims[name] {
			r := &reservations[c.of]
			if presented[c.of] == nil {
				presented[c.of] = claimOf(r, v.by)
			}
			shown := *presented[c.of]
			shown.Start, shown.End, shown.Instances, shown.Share = c.claim.Span.Start.Time(), c.claim.Span.End.Time(), c.claim.Slices, 1
			if r.Kind == reservation.Instances && there {
				shown.Share = r.Resources.Scale(int64(c.claim.Slices)).ShareOf(v.snapshot.Host(at).Capacity)
			}
			row.Claims = append(row.Claims, shown)
		}
		count += len(row.Claims)
		answer.Hosts = append(answer.Hosts, row)
	}
	return answer, nil
}

// claimsByHost returns the claims that overlap w, by host and sorted by start.
func claimsByHost(reservations []reservation.Reservation, w span.Span) map[string][]claimAt {
	claims := make(map[string][]claimAt)
	for i := range reservations {
		r := &reservations[i]
		for at := range r.Claims {
			if c := &r.Claims[at]; c.Span.Overlaps(w) {
				claims[c.Host] = append(claims[c.Host], claimAt{i, c})
			}
		}
	}
	for _, list := range claims {
		slices.SortStableFunc(list, func(a, b claimAt) int { return cmp.Compare(a.claim.Span.Start, b.claim.Span.Start) })
	}
	return claims
}

// rows returns the names of the hosts after the marker that v selects, sorted: those of the
// inventory, and without a filter those that have claims.
func (v *calendarView) rows(claims map[string][]claimAt) ([]string, error) {
	names := make(map[string]bool, v.snapshot.Len())
	for _, h := range v.snapshot.Hosts() {
		names[h.Name] = v.filter.Matches(h, false)
	}
	for host := range claims {
		if _, there := names[host]; !there {
			names[host] = v.all
		}
	}
	known := func(host string) bool { _, there := names[host]; return there }
	for _, host := range v.hosts {
		if !known(host) {
			return nil, fault.Field("host", "%s", fault.Unknown("host", host, slices.Sorted(maps.Keys(names))))
		}
	}
	if v.marker != "" && !known(v.marker) {
		return nil, fault.Field("marker", "there is no host %s", v.marker)
	}
	selected := make(map[string]bool, len(v.hosts))
	for _, host := range v.hosts {
		selected[host] = true
	}
	var rows []string
	for host, matches := range names {
		if matches && host > v.marker && (len(v.hosts) == 0 || selected[host]) {
			rows = append(rows, host)
		}
	}
	slices.Sort(rows)
	return rows, nil
}

// claimOf returns what a caller may see of the claims of a reservation, without their times.
func claimOf(r *reservation.Reservation, by *asker) *v1.Claim {
	claim := &v1.Claim{Kind: string(r.Kind), Mine: r.ProjectID == by.ProjectID, Maintenance: r.Maintenance}
	if claim.Mine || by.may("reservations:get_all_projects", r.ProjectID) {
		claim.Status, claim.OnEnd = string(r.Status), string(r.OnEnd)
	}
	if knows(by, r) {
		claim.ReservationID, claim.Name, claim.ProjectID = r.ID, r.Name, r.ProjectID
	}
	return claim
}
