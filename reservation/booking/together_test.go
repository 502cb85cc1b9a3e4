// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// drawRows draws hosts in rows; some are in none.
func drawRows(t *rapid.T) []inventory.Host {
	hosts := drawHosts(t)
	for i := range hosts {
		if row := rapid.SampledFrom([]string{"", "1", "1", "2", "2", "3"}).Draw(t, "row"); row != "" || i == 0 {
			properties := map[string]inventory.Value{"row": inventory.StringValue(row)}
			for name, value := range hosts[i].Properties {
				properties[name] = value
			}
			hosts[i].Properties = properties
		}
	}
	return hosts
}

// drawRule draws a request with a rule about the rows of its hosts, apart from those of a live reservation, or both.
func (s *scene) drawRule(t *rapid.T) reservation.Request {
	req := drawRequest(t, s.clock())
	near, apart := drawLive(t, s)
	if apart = apart && rapid.Bool().Draw(t, "apart"); apart && rapid.Bool().Draw(t, "only apart") {
		req.Together = reservation.Together{By: "row", ApartFrom: near.ID}
		return req
	}
	rule := reservation.Together{By: "row", Rule: rapid.SampledFrom(reservation.TogetherRules).Draw(t, "rule"), Preferred: true}
	if rule.Rule != reservation.TogetherFewest {
		rule.Preferred = rapid.Bool().Draw(t, "preferred")
	}
	if rule.Rule == reservation.TogetherSpread {
		rule.Values = 2
		req.Policy = calendar.PolicyFirstFit
	}
	if apart {
		rule.ApartFrom = near.ID
	}
	req.Together = rule
	return req
}

// A required rule is kept, and what is told of a preferred one is so, whatever is booked, changed and replaced.
//
//make:test-drawn
func TestARuleIsKeptOrTheAnswerTellsThatItIsNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawRows(t), limited(drawLimits(t)))
		for range rapid.IntRange(1, 8).Draw(t, "bookings") {
			if _, err := s.bookings.Book(t.Context(), projects[0], s.drawRule(t), nil); err != nil {
				expectKinds(t, err, fault.Invalid)
			}
		}
		s.checkRules(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s.passTo(t, s.clock()+span.Instant(drawTicks(t, 0, 8, "later")))
			for i := range s.hosts {
				drawState(t, &s.hosts[i])
			}
			s.observe(t)
			bad := make(map[string]bool)
			for i := range s.hosts {
				bad[s.hosts[i].Name] = rapid.IntRange(0, 2).Draw(t, "failed") == 0
			}
			if r, ok := drawLive(t, s); ok {
				if _, _, err := s.bookings.Heal(t.Context(), r.ID, func(host string) (string, bool) { return down, bad[host] }); err != nil {
					t.Fatal(err)
				}
				s.checkRules(t)
			}
			if r, ok := drawLive(t, s); ok {
				if _, err := s.bookings.Change(t.Context(), booking.Caller{Admin: true}, r.ID, drawChange(t, r)); err != nil {
					expectKinds(t, err, fault.Invalid, fault.Conflict)
				}
			}
			s.checkRules(t)
			s.check(t)
		}
	})
}

// rows returns the rows of the hosts that a reservation still has; "none" is no row.
func (s *scene) rows(r reservation.Reservation) map[string]bool {
	rows := map[string]bool{}
	for _, c := range r.Claims {
		if c.Span.End > s.clock() {
			row, _ := s.host(c.Host).Properties["row"].Any().(string)
			if _, has := s.host(c.Host).Properties["row"]; !has {
				row = "none"
			}
			rows[row] = true
		}
	}
	return rows
}

// checkRules checks the rule of each live reservation.
func (s *scene) checkRules(t *rapid.T) {
	t.Helper()
	live := s.live(t)
	for _, r := range live {
		rows := s.rows(r)
		for _, other := range live {
			if other.ID == r.Together.ApartFrom {
				others := s.rows(other)
				delete(others, "none")
				if slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(row string) bool { return row == "none" || others[row] }) || !s.bookings.Lies(r) && !r.Together.Broken {
					t.Fatalf("%+v on %v, apart from %v", r, rows, others)
				}
			}
		}
		kept := true
		switch r.Together.Rule {
		case reservation.TogetherSame:
			kept = len(rows) <= 1 && !rows["none"]
		case reservation.TogetherSpread:
			delete(rows, "none")
			kept = len(rows) >= r.Together.Values
		}
		if len(rows) > 0 && (kept == r.Together.Broken || !kept && !r.Together.Preferred) {
			t.Fatalf("%+v on %v", r, rows)
		}
	}
}

// The start and the quantity that a refusal names are accepted.
//
//make:test-drawn
func TestWhatARefusalByARuleNamesIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawRows(t), limited(drawLimits(t)))
		for range rapid.IntRange(1, 8).Draw(t, "bookings") {
			_, _ = s.bookings.Book(t.Context(), projects[0], s.drawRule(t), nil)
		}
		s.passTo(t, s.clock()+span.Instant(drawTicks(t, 0, 8, "later")))
		for range 4 {
			req := s.drawRule(t)
			if refused, ok := s.tryBook(t, projects[0], req).(*reservation.Refusal); ok {
				if req.Quantity = refused.LargestQuantity; refused.LargestQuantity > 0 {
					if err := s.tryBook(t, projects[0], req); err != nil {
						t.Fatalf("%v; the largest quantity: %v", refused, err)
					}
				}
			}
			r, ok := drawLive(t, s)
			if !ok {
				continue
			}
			c, by := drawChange(t, r), booking.Caller{ProjectID: r.ProjectID}
			_, err := s.bookings.OfferChange(t.Context(), by, r.ID, c)
			refused, ok := err.(*reservation.Refusal)
			if !ok {
				continue
			}
			if fewer := c; refused.LargestQuantity > 0 {
				fewer.Quantity = &refused.LargestQuantity
				if _, err := s.bookings.OfferChange(t.Context(), by, r.ID, fewer); err != nil {
					t.Fatalf("%v; the largest quantity: %v", refused, err)
				}
			}
			if later := c; refused.EarliestStart != 0 {
				to := r.Span
				if c.Start != nil {
					to.Start = *c.Start
				}
				if c.End != nil {
					to.End = *c.End
				}
				length := int64(to.End - max(to.Start, s.clock()))
				later.Start, later.End = &refused.EarliestStart, new(refused.EarliestStart.Add(length))
				if _, err := s.bookings.OfferChange(t.Context(), by, r.ID, later); err != nil {
					t.Fatalf("%v; the earliest start: %v", refused, err)
				}
			}
		}
	})
}
