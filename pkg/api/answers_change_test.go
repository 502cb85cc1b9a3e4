// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// changes asks for an offer of a change of a reservation.
func (s *scene) changes(r *reservation.Reservation, c amended) reply {
	s.t.Helper()
	return s.send(inquiry{r.ProjectID + "/admin", "PATCH", "/v1/reservations/" + r.ID + "?dry_run=true", "", c.body()})
}

// to returns the span and the quantity that the change would make of a reservation.
// A start that passed a moment ago means now.
func (c amended) to(r *reservation.Reservation, now span.Instant) (w span.Span, quantity int) {
	w, quantity = r.Span, r.Quantity
	if c.start != nil && *c.start != r.Span.Start {
		w.Start = max(*c.start, now)
	}
	if c.end != nil {
		w.End = *c.end
	}
	if c.quantity != nil {
		quantity = *c.quantity
	}
	return w, quantity
}

// askChange asks for a change through the native API and holds the answer to what it says.
func (s *scene) askChange(r reservation.Reservation, c amended) {
	s.t.Helper()
	a := s.changes(&r, c)
	s.t.Logf("question at %v about %v of %s, %d on %v: %v", s.now, r.Span, r.Status, r.Quantity, r.Claims, a)
	switch {
	case a.granted():
		s.holdChangeOffer(&r, c, a)
	case a.refusal != nil:
		s.holdChangeRefusal(&r, c, *a.refusal)
	}
}

// holdChangeOffer checks that the change is what its offer says.
func (s *scene) holdChangeOffer(r *reservation.Reservation, c amended, a reply) {
	s.t.Helper()
	offer := decode[v1.OfferAnswer](s.t, answer{body: a.body}).Offer
	w, quantity := c.to(r, s.now)
	if (span.Span{Start: span.At(offer.Start), End: span.At(offer.End)}) != w || offer.Quantity != quantity {
		s.t.Fatalf("the offer is not the change that was asked for")
	}
	done := s.copied(nil).send(inquiry{a.inquiry.by, "PATCH", "/v1/reservations/" + r.ID, "", c.body()})
	if !done.granted() {
		s.t.Fatalf("the offer cannot be had: %v", done)
	}
	got := decode[v1.Reservation](s.t, answer{body: done.body})
	hosts := slices.Sorted(slices.Values(got.Hosts))
	if got.Start != offer.Start || got.End != offer.End || got.Quantity != offer.Quantity || !slices.Equal(hosts, offer.Hosts) {
		s.t.Fatalf("the change differs from its offer: %v", done)
	}
	want := r.Terms
	if c.filter != nil {
		want.HostProperties = strings.Trim(*c.filter, `"`)
	}
	if c.onEnd != "" {
		want.OnEnd = reservation.OnEnd(c.onEnd)
	}
	if c.beforeEnd != nil {
		want.BeforeEnd = *c.beforeEnd
	}
	if span.At(got.End) != r.Span.End && r.Membership.LeaseID != "" {
		want.BeforeEnd = int64(got.BeforeEnd) // the warning of its lease moves with the end, but not before the start
	}
	if c.size != nil && (got.Resources == nil || !resource.Vector(*got.Resources).Equal(*c.size)) || c.affinity != "" && got.Affinity != c.affinity {
		s.t.Fatalf("the instances are not what it asks for: %v", done)
	}
	if !sameJSON(string(got.HostProperties), want.HostProperties) || got.OnEnd != string(want.OnEnd) || int64(got.BeforeEnd) != want.BeforeEnd {
		s.t.Fatalf("the change has not what it asks for: %v", done)
	}
}

// sameJSON reports whether two texts have one value in JSON. An empty text has none.
func sameJSON(one, other string) bool {
	var a, b any
	return one == other || json.Unmarshal([]byte(one), &a) == nil && json.Unmarshal([]byte(other), &b) == nil && reflect.DeepEqual(a, b)
}

// holdChangeRefusal checks every fact in the refusal of a change.
func (s *scene) holdChangeRefusal(r *reservation.Reservation, c amended, refusal v1.Refusal) {
	s.t.Helper()
	w, quantity := c.to(r, s.now)
	if refusal.LatestEnd != nil {
		if a := s.changes(r, amended{end: new(span.At(*refusal.LatestEnd))}); !a.granted() {
			s.t.Fatalf("the latest end is refused: %v", a)
		}
	}
	s = s.still()
	if !r.Maintenance {
		s.holdLargest(quantity, refusal, func(n int) reply {
			fewer := c
			fewer.quantity = &n
			return s.changes(r, fewer)
		})
	}
	moved := func(start span.Instant) reply {
		m := c
		m.start, m.end = &start, new(start.Add(w.Seconds()))
		return s.changes(r, m)
	}
	switch active := r.Status == reservation.Active; {
	case active && refusal.EarliestStart != nil:
		s.t.Fatalf("an active reservation cannot start at another time")
	case !active:
		s.holdEarliest(refusal.EarliestStart, max(w.Start, s.now), w.Seconds(), moved)
	}
	if c.end != nil && (c.start == nil || *c.start == r.Span.Start) && quantity == r.Quantity && c.filter == nil && c.size == nil && c.affinity == "" && *c.end > r.Span.End {
		s.holdLatest(refusal, r.Span.End, *c.end, 1, func(end span.Instant) reply { return s.changes(r, amended{end: &end}) })
	} else if refusal.LatestEnd != nil {
		s.t.Fatalf("it is no extension")
	}
	wanted := span.Span{Start: max(w.Start, s.now), End: w.End}
	beside := *r
	if c.filter != nil {
		beside.HostProperties = strings.Trim(*c.filter, `"`)
	}
	if c.size != nil {
		beside.Resources = *c.size
	}
	beside.Affinity = calendar.Affinity(cmp.Or(c.affinity, string(r.Affinity)))
	s.holdFreeBeside(&beside, wanted, refusal.Free)
	s.holdBlocks(refusal, wanted, []reservation.Reservation{*r}, func(s *scene) reply { return s.changes(r, c) })
}

// holdEarliest checks that the earliest start of a refusal is granted, if there is one, and that none is
// before it.
func (s *scene) holdEarliest(earliest *time.Time, from span.Instant, length int64, again func(start span.Instant) reply) {
	s.t.Helper()
	last := s.end()
	if earliest != nil {
		last = span.At(*earliest)
		if a := again(last); !a.granted() {
			s.t.Fatalf("the earliest start is refused: %v", a)
		}
	}
	for _, t := range s.probes(from, last, length) {
		if a := again(t); a.granted() && !s.bounds(a) {
			s.t.Fatalf("a start before the earliest is granted: %v", a)
		}
	}
}

// holdLatest checks that the latest end of a refusal is granted, if there is one, and that none is
// between it, or the present end, and the one that was refused. Ends are asked in steps of some seconds.
func (s *scene) holdLatest(refusal v1.Refusal, present, refused span.Instant, step int64, again func(end span.Instant) reply) {
	s.t.Helper()
	latest := present
	if refusal.LatestEnd != nil {
		latest = span.At(*refusal.LatestEnd)
		if a := again(latest); !a.granted() || latest <= present {
			s.t.Fatalf("the latest end is refused: %v", a)
		}
	}
	ends := append(s.probes(latest.Add(1), refused, 0), latest.Add(1), refused-1)
	for _, end := range ends {
		if end <= latest || end >= refused || int64(end)%step != 0 {
			continue
		}
		if a := again(end); a.refusal == nil && !s.bounds(a) {
			s.t.Fatalf("a later end than the latest, %v, is not refused: %v", latest, a)
		}
	}
}

// holdFreeBeside checks how many are free in w for a reservation, if it were not there. The hosts that it
// has are woken for it.
func (s *scene) holdFreeBeside(r *reservation.Reservation, w span.Span, free int) {
	s.t.Helper()
	beside := s.copied(map[string]bool{r.ID: true}, func(c *scene) {
		c.hosts = slices.Clone(c.hosts)
		for i := range c.hosts {
			h := &c.hosts[i]
			for _, claim := range r.Claims {
				if claim.Host == h.Name && h.AwakeAt(s.now) != span.Forever && claim.Span.Start < h.AwakeAt(s.now) {
					h.BootSeconds = max(0, int64(claim.Span.Start-s.now))
				}
				if h.BootSeconds == 0 && h.Power == inventory.PowerSleeping {
					h.Power = inventory.PowerOn
				}
			}
		}
	})
	beside.holdFree(r.ProjectID+"/admin", like(r, w), free)
}

// like returns a request for the same as a reservation in w.
func like(r *reservation.Reservation, w span.Span) asked {
	q := asked{kind: string(r.Kind), affinity: string(r.Affinity), filter: r.HostProperties, quantity: r.Quantity, size: r.Resources, start: w.Start, end: w.End}
	if r.Maintenance {
		q.maintained = r.HostNames()
	}
	return q
}
