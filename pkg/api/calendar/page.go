// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// mostClaims is the number of claims with which a page of the calendar ends.
const mostClaims = 50_000

// page returns the answer to v, as JSON, and sets v.marks to the version that it contains.
func (s *API) page(ctx context.Context, v *view) ([]byte, error) {
	var page bytes.Buffer
	var err error
	turnErr := s.Turns.InTurn(ctx, v.by.ProjectID, func() {
		var answer v1.Calendar
		if answer, err = s.answer(ctx, v); err != nil {
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

func (s *API) answer(ctx context.Context, v *view) (answer v1.Calendar, err error) {
	var live []reservation.Reservation
	live, v.marks = s.Live.LiveMarked(v.span)
	if !v.past {
		return v.page(live, "", false)
	}
	// The live ones come first: a reservation that ends in between is in both lists, and in none the
	// other way round.
	past, unread, err := s.pastOf(ctx, v)
	if err != nil {
		return answer, err
	}
	list := withPast(live, past)
	marked := v.marker == "" || slices.ContainsFunc(live, func(r reservation.Reservation) bool {
		return slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == v.marker })
	})
	if _, there := v.snapshot.Index(v.marker); !there && !marked {
		held, more, err := s.History.PastOnHosts(ctx, reservation.PastHosts{Overlaps: v.span, Hosts: []string{v.marker}, Limit: 1})
		if err != nil {
			return answer, err
		}
		marked = len(held) > 0 || more != ""
	}
	if answer, err = v.page(list, unread, marked); err != nil {
		return answer, err
	}
	// After the claims, so that it covers what was purged until they were read.
	kept, err := s.History.Kept(ctx)
	if v.span.Start < kept.From {
		answer.KeptFrom = new(kept.From.Time())
	}
	return answer, err
}

// pastOf returns what was held in the past on the hosts of the page, and the first host with more; see
// History.PastOnHosts.
func (s *API) pastOf(ctx context.Context, v *view) (list []reservation.Past, unread string, err error) {
	q := reservation.PastHosts{Overlaps: v.span, Hosts: v.hosts, After: v.marker, Limit: mostClaims}
	if len(q.Hosts) == 0 {
		names := v.inventoryAfter()
		full := len(names) > v.limit
		names = names[:min(len(names), v.limit)]
		switch {
		case !v.all && len(names) == 0:
			return nil, "", nil
		case !v.all:
			q.Hosts = names
		case full:
			q.Last = names[v.limit-1]
		}
	}
	return s.History.PastOnHosts(ctx, q)
}

// inventoryAfter returns the names of the hosts of the inventory that pass the filter and follow the
// marker, sorted.
func (v *view) inventoryAfter() (names []string) {
	for _, h := range v.snapshot.Hosts() {
		if h.Name > v.marker && v.filter.Matches(h, false) {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}

// withPast returns live reservations, with what each has released, and those that are over, sorted by
// start, then id.
func withPast(live []reservation.Reservation, past []reservation.Past) []reservation.Reservation {
	known, at := versionsOf(live), make(map[string]int, len(live))
	for i := range live {
		at[live[i].ID] = i
	}
	for i := range past {
		r, claims := past[i].Reservation, known.besides(&past[i])
		if place, is := at[r.ID]; is {
			live[place].Claims = slices.Concat(live[place].Claims, claims)
		} else if r.Claims = claims; len(claims) > 0 {
			live = append(live, r)
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

// page returns the page of the calendar that v asks for, which ends before the host unread unless it is
// empty. marked reports whether there are claims on the host that the marker names. It fails with an
// Invalid fault for an unknown host, and if one host has too many claims.
func (v *view) page(reservations []reservation.Reservation, unread string, marked bool) (v1.Calendar, error) {
	claims := claimsByHost(reservations, v.span)
	rows, err := v.rows(claims, unread, marked)
	answer := v1.Calendar{Start: v.span.Start.Time(), End: v.span.End.Time(), Hosts: []v1.HostCalendar{}, UnknownProperties: v.filter.Unknown()}
	if err != nil {
		return answer, err
	}
	visible, count := v.by.SightOf(v.snapshot), 0
	presented := make([]*v1.Claim, len(reservations)) // without times; nil for reservations on other pages
	for _, name := range rows {
		cut := unread != "" && name >= unread
		if cut && len(answer.Hosts) == 0 {
			return answer, fault.Field("start", "more than %d claims on host %s overlap the time; ask for a shorter time", mostClaims, name)
		}
		if len(answer.Hosts) == v.limit || count >= mostClaims || cut {
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
func (v *view) rows(claims map[string][]claimAt, unread string, marked bool) ([]string, error) {
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
		if !known(host) && (unread == "" || host < unread) {
			return nil, fault.Field("host", "%s", fault.Unknown("host", host, slices.Sorted(maps.Keys(names))))
		}
	}
	if v.marker != "" && !known(v.marker) && !marked {
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
func claimOf(r *reservation.Reservation, by *serving.Asker) *v1.Claim {
	claim := &v1.Claim{Kind: string(r.Kind), Mine: r.BelongsTo(by.ProjectID), Maintenance: r.Maintenance}
	if by.Sees(r) {
		claim.Status, claim.OnEnd = string(r.Status), string(r.OnEnd)
	}
	if by.Knows(r) || claim.Mine {
		claim.ReservationID, claim.Name, claim.ProjectID = r.ID, r.Name, r.ProjectID
	}
	return claim
}
