// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// rehomed is a reservation on host a from 1000 to 2000, and whether it has other hosts when another one needs a then.
type rehomed struct {
	req   reservation.Request
	hosts []string // of the cloud
	now   int64
	moves bool
}

func rehomings() map[string]rehomed {
	pending := during(1, 1000, 2000)
	return map[string]rehomed{
		"hosts":                         {req: pending, hosts: []string{"a", "b", "c"}, moves: true},
		"two hosts":                     {req: during(2, 1000, 2000), hosts: []string{"a", "b", "c"}, moves: true},
		"instances":                     {req: cpus(2, 3, 1000, 2000), hosts: []string{"a", "b"}, moves: true},
		"a movable one, at its time":    {req: movable(1, 1000, 3000, 1000, 100), hosts: []string{"a", "b"}, moves: true},
		"none, without another host":    {req: pending, hosts: []string{"a"}},
		"none, if two need three hosts": {req: during(2, 1000, 2000), hosts: []string{"a", "b"}},
		"none that named its host":      {req: only("a", pending), hosts: []string{"a", "b"}},
		"none that is prepared":         {req: pending, hosts: []string{"a", "b"}, now: 941},
		"none with hosts that lie so": {req: func() reservation.Request {
			r := pending
			r.Together = reservation.Together{By: "name", Rule: reservation.TogetherSame}
			return r
		}(), hosts: []string{"a", "b"}},
		"no other maintenance":            {req: maintenance(1000, 2000, "a"), hosts: []string{"a", "b"}},
		"none that is held for its owner": {req: func() reservation.Request { r := pending; r.Hold = 600; return r }(), hosts: []string{"a", "b"}},
	}
}

// scene returns the scene of a case, with what its owner has, at its time.
func (c rehomed) scene(t *testing.T, before ...reservation.Request) (s *scene, had reservation.Reservation) {
	s = newScene(t, named(c.hosts...), func(o *booking.Options) { o.LeadTime, o.Limits.Hold, o.Limits.Holds = 60, 600, 3 })
	for _, req := range before {
		s.book(t, req)
	}
	had = s.bookMovable(t, c.req)
	s.passTo(t, at(c.now))
	return s, had
}

// check checks what became of the reservation when another one asked for host a.
func (c rehomed) check(t *testing.T, s *scene, before reservation.Reservation, got reservation.Reservation, err error) {
	t.Helper()
	after := s.get(t, before.ID)
	if !c.moves {
		if r := refusal(t, err); r.Constraint != reservation.HostsFree || !slices.Equal(after.Claims, before.Claims) {
			t.Errorf("refused by %s, and the other has %v", r.Constraint, after.Claims)
		}
		return
	}
	if err != nil || !slices.Equal(got.HostNames(), []string{"a"}) {
		t.Fatalf("the one that asks has %v, %v", got.HostNames(), err)
	}
	last, moved := after.LastEvent(reservation.MovedEvent)
	if after.Span != before.Span || slices.Contains(after.HostNames(), "a") || !moved || last.Detail != "other hosts at the same time" {
		t.Errorf("it had %v and has %v: %+v", before.Claims, after.Claims, last)
	}
	s.check(t)
}

// Maintenance has its hosts if those who have them later can have others at the same time.
func TestMaintenanceMovesWhatHasNotBegunToOtherHosts(t *testing.T) {
	cases := rehomings()
	cases["none that has begun"] = rehomed{req: during(1, 1000, 2000), hosts: []string{"a", "b"}, now: 1200}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, before := c.scene(t)
			got, err := s.bookings.Book(t.Context(), owner, maintenance(1500, 1700, "a"), nil)
			c.check(t, s, before, got, err)
		})
	}
}

// A reservation ends later if those who have its hosts then can have others at the same time, whether it has begun or not.
func TestAnExtensionMovesWhatHasNotBegunToOtherHosts(t *testing.T) {
	for status, now := range map[string]int64{"pending": 0, "active": 550} {
		for name, c := range rehomings() {
			t.Run(status+" beside "+name, func(t *testing.T) {
				c.now = max(c.now, now)
				s, before := c.scene(t, only("a", during(1, 500, 1000)))
				id := s.live(t)[0].ID
				later := planning.Change{End: new(at(1700))}
				offer, offerErr := s.bookings.OfferChange(t.Context(), owner, id, later)
				if s.get(t, before.ID).Version != before.Version {
					t.Error("an offer moves the other one")
				}
				got, err := s.bookings.Change(t.Context(), owner, id, later)
				if (offerErr == nil) != (err == nil) || err == nil && cmp.Diff(offer.Claims, got.Claims) != "" {
					t.Errorf("the offer was %v, %v", offer.Claims, offerErr)
				}
				c.check(t, s, before, got, err)
			})
		}
	}
}

func TestAnExtensionMovesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change planning.Change
		adjust func(*booking.Options)
	}{
		"with another start":                {change: planning.Change{Start: new(at(600)), End: new(at(1700))}, adjust: limited(planning.Limits{})},
		"with more hosts":                   {change: planning.Change{Quantity: new(2), End: new(at(1700))}, adjust: limited(planning.Limits{})},
		"if a usage service allows each":    {change: planning.Change{End: new(at(1700))}, adjust: func(o *booking.Options) { o.Enforcement = enforcement.New(enforcement.Options{}) }},
		"beyond the limit of its project":   {change: planning.Change{End: new(at(1700))}, adjust: limited(planning.Limits{Duration: 1000})},
		"past the next one with named host": {change: planning.Change{End: new(at(2500))}, adjust: limited(planning.Limits{})},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b"), tc.adjust)
			r := s.book(t, only("a", during(1, 500, 1000)))
			next := s.bookMovable(t, during(1, 1000, 2000))
			s.bookMovable(t, only("a", during(1, 2000, 3000)))
			s.bookMovable(t, only("b", during(1, 2100, 2200)))
			_, err := s.bookings.Change(t.Context(), owner, r.ID, tc.change)
			refusal(t, err)
			if after := s.get(t, next.ID); !slices.Equal(after.Claims, next.Claims) {
				t.Errorf("the other one has %v", after.Claims)
			}
		})
	}
}

// Whatever is drawn, an extension changes nothing of others but the hosts of those that have not begun. If one of them alone is in
// its way, it is refused only if that one could not be booked again beside it.
func TestAnExtensionLeavesOthersWhatTheyAskedFor(t *testing.T) {
	moved, alone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		if rapid.Bool().Draw(t, "on equal hosts") {
			s = drawNeighbors(t)
		}
		for range 5 {
			r, ok := drawLive(t, s)
			if !ok {
				return
			}
			others := slices.DeleteFunc(s.live(t), func(o reservation.Reservation) bool { return o.ID == r.ID })
			later := planning.Change{End: new(r.Span.End.Add(drawTicks(t, 1, 20, "later")))}
			_, err := s.bookings.Change(t.Context(), booking.Caller{ProjectID: r.ProjectID}, r.ID, later)
			for _, before := range others {
				if s.leftTo(t, before, err == nil) {
					moved++
				}
			}
			s.check(t)
			refused, is := err.(*reservation.Refusal)
			if !is || refused.Constraint != reservation.HostsFree {
				continue
			}
			alone++
			x := rapid.SampledFrom(append(others, r)).Draw(t, "in the way")
			if x.ID != r.ID && planning.MayChangeHosts(&x, s.clock(), 0) && s.goes(t, x, r, later) {
				t.Fatalf("the extension of %v to %v is refused, and is possible if %v is booked again after it", r, *later.End, x)
			}
		}
	})
	t.Log(moved, "have moved,", alone, "extensions were refused")
}

// drawNeighbors returns a scene with some reservations of one or two hosts of three, one of them by its name.
func drawNeighbors(t *rapid.T) *scene {
	s := newScene(t, named("a", "b", "c"))
	for range rapid.IntRange(3, 8).Draw(t, "bookings") {
		start := drawTicks(t, 0, 20, "start")
		req := during(rapid.IntRange(1, 2).Draw(t, "quantity"), start, start+drawTicks(t, 1, 8, "duration"))
		if req.Quantity == 1 && rapid.IntRange(0, 3).Draw(t, "by name") == 0 {
			req = only("a", req)
		}
		_, _ = s.bookings.Book(t.Context(), rapid.SampledFrom(projects).Draw(t, "by"), req, nil) // or there is no room
	}
	return s
}

// leftTo checks what an extension has left to another reservation, and reports whether it has other hosts.
func (s *scene) leftTo(t *rapid.T, before reservation.Reservation, extended bool) bool {
	t.Helper()
	after := s.get(t, before.ID)
	if after.Version == before.Version {
		return false
	}
	if !extended || !planning.MayChangeHosts(&before, s.clock(), 0) {
		t.Fatalf("an extension, granted: %v, changes %v", extended, before)
	}
	same := after
	same.Claims, same.Events, same.Version, same.Updated = before.Claims, before.Events, before.Version, before.Updated
	if diff := cmp.Diff(before, same); diff != "" || slices.Equal(before.HostNames(), after.HostNames()) && before.Kind == reservation.Hosts {
		t.Fatalf("an extension changes %v to %v:\n%s", before, after, diff)
	}
	return true
}

// goes reports whether r can end later if x is canceled before and booked again after that, while all others stay. It leaves the
// scene so.
func (s *scene) goes(t *rapid.T, x, r reservation.Reservation, later planning.Change) bool {
	t.Helper()
	if _, err := s.bookings.Cancel(t.Context(), booking.Caller{ProjectID: x.ProjectID}, x.ID); err != nil {
		t.Fatal(err)
	}
	others := s.live(t)
	if _, err := s.bookings.Change(t.Context(), booking.Caller{ProjectID: r.ProjectID}, r.ID, later); err != nil {
		return false
	}
	if slices.ContainsFunc(others, func(o reservation.Reservation) bool { return o.ID != r.ID && s.get(t, o.ID).Version != o.Version }) {
		return false
	}
	again := reservation.Request{Terms: x.Terms, Start: x.Span.Start, Duration: x.Span.Seconds()}
	_, err := s.bookings.Book(t.Context(), booking.Caller{ProjectID: x.ProjectID}, again, nil)
	return err == nil
}
