// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func starts(t int64) planning.Change      { return planning.Change{Start: new(at(t))} }
func ends(t int64) planning.Change        { return planning.Change{End: new(at(t))} }
func quantity(n int) planning.Change      { return planning.Change{Quantity: new(n)} }
func renamed(name string) planning.Change { return planning.Change{Name: &name} }

func moves(start, end int64) planning.Change {
	return planning.Change{Start: new(at(start)), End: new(at(end))}
}

// The reservation has two hosts, b and c in the order of choice. Host a is taken before and
// after it.
func TestChangesOfAPendingReservation(t *testing.T) {
	for name, tc := range map[string]struct {
		change   planning.Change
		want     span.Span
		wantHeld []string
	}{
		"rename":                           {renamed("night run"), span.Span{Start: at(100), End: at(200)}, []string{"b", "c"}},
		"later end":                        {ends(300), span.Span{Start: at(100), End: at(300)}, []string{"b", "c"}},
		"earlier end":                      {ends(150), span.Span{Start: at(100), End: at(150)}, []string{"b", "c"}},
		"earlier start":                    {starts(50), span.Span{Start: at(50), End: at(200)}, []string{"b", "c"}},
		"later start":                      {starts(150), span.Span{Start: at(150), End: at(200)}, []string{"b", "c"}},
		"another time":                     {moves(500, 600), span.Span{Start: at(500), End: at(600)}, []string{"b", "c"}},
		"overlapping itself":               {moves(150, 250), span.Span{Start: at(150), End: at(250)}, []string{"b", "c"}},
		"fewer":                            {quantity(1), span.Span{Start: at(100), End: at(200)}, []string{"b"}},
		"more":                             {quantity(3), span.Span{Start: at(100), End: at(200)}, []string{"b", "c", "d"}},
		"where c is taken it goes to d":    {ends(401), span.Span{Start: at(100), End: at(401)}, []string{"b", "d"}},
		"where b and c are taken, a and d": {moves(400, 701), span.Span{Start: at(400), End: at(701)}, []string{"a", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c", "d"))
			s.book(t, only("a", during(1, 0, 300)))
			s.book(t, only("c", during(1, 400, 450)))
			s.book(t, only("b", during(1, 700, 800)))
			r := s.book(t, during(2, 100, 200))
			r = s.change(t, r.ID, tc.change)
			if diff := cmp.Diff(tc.wantHeld, claimed(r)); diff != "" || r.Span != tc.want {
				t.Errorf("span %v, want %v; hosts (-want +got):\n%s", r.Span, tc.want, diff)
			}
			if diff := cmp.Diff(r, s.get(t, r.ID)); diff != "" || r.Version != 2 {
				t.Errorf("version %d (-returned +stored):\n%s", r.Version, diff)
			}
			s.check(t)
		})
	}
}

func TestChangesOfPendingInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		affinity calendar.Affinity
		change   planning.Change
		want     []string
	}{
		"more on the same host":              {calendar.AffinityNone, quantity(4), []string{"a×4"}},
		"more than the host has":             {calendar.AffinityNone, quantity(7), []string{"a×4", "b×3"}},
		"fewer":                              {calendar.AffinityNone, quantity(1), []string{"a×1"}},
		"what stays is not moved":            {calendar.AffinityNone, ends(400), []string{"a×2", "b×1"}},
		"one host: all go where all fit":     {calendar.AffinitySame, ends(400), []string{"b×3"}},
		"one host: more go where all fit":    {calendar.AffinitySame, moves(300, 400), []string{"b×3"}},
		"different hosts: one more":          {calendar.AffinityDifferent, quantity(4), []string{"a×1", "b×1", "c×1", "d×1"}},
		"different hosts: fewer stay":        {calendar.AffinityDifferent, quantity(2), []string{"a×1", "b×1"}},
		"different hosts: only the taken go": {calendar.AffinityDifferent, ends(600), []string{"b×1", "c×1", "d×1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c", "d"))
			s.book(t, only("a", cpus(4, 1, 300, 500))) // leaves room for 2 instances of 2 vCPUs
			s.book(t, only("a", cpus(8, 1, 500, 700)))
			req := cpus(2, 3, 100, 200)
			req.Affinity = tc.affinity
			r := s.book(t, req)
			r = s.change(t, r.ID, tc.change)
			if diff := cmp.Diff(tc.want, claimed(r)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			s.check(t)
		})
	}
}

func TestAnInvalidChangeNamesItsField(t *testing.T) {
	both := moves(300, 250)
	for name, tc := range map[string]struct {
		active bool
		change planning.Change
		kind   fault.Kind
		field  string
	}{
		"no quantity":                    {change: quantity(0), kind: fault.Invalid, field: "quantity"},
		"a name without end":             {change: renamed(strings.Repeat("x", 256)), kind: fault.Invalid, field: "name"},
		"a start in the past":            {change: starts(-planning.LatestPast - 1), kind: fault.Invalid, field: "start_time"},
		"a start at the end":             {change: starts(200), kind: fault.Invalid, field: "start_time"},
		"an end at the start":            {change: ends(100), kind: fault.Invalid, field: "end_time"},
		"an end before the new start":    {change: both, kind: fault.Invalid, field: "end_time"},
		"an end after all years":         {change: planning.Change{End: new(span.Forever)}, kind: fault.Invalid, field: "end_time"},
		"more than 100 years":            {change: ends(101 * year), kind: fault.Invalid, field: "end_time"},
		"active: another start":          {active: true, change: starts(140), kind: fault.Conflict, field: "start_time"},
		"active: an end in the past":     {active: true, change: ends(120), kind: fault.Invalid, field: "end_time"},
		"active: an end now":             {active: true, change: ends(150), kind: fault.Invalid, field: "end_time"},
		"active: an end before it began": {active: true, change: ends(50), kind: fault.Invalid, field: "end_time"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a"))
			r := s.book(t, during(1, 100, 200))
			if tc.active {
				s.passTo(t, at(150))
			}
			before := s.stored(t)
			_, err := s.bookings.Change(t.Context(), owner, r.ID, tc.change)
			if got := fault.Of(err); got == nil || got.Kind != tc.kind || got.Field != tc.field {
				t.Errorf("got %v (field %q), want %s on %s", err, fieldOf(err), tc.kind, tc.field)
			}
			if diff := cmp.Diff(before, s.stored(t)); diff != "" {
				t.Errorf("records (-before +after):\n%s", diff)
			}
			s.check(t)
		})
	}
}

func TestWhoMayChangeAndCancel(t *testing.T) {
	admin := booking.Caller{ProjectID: "ops", Admin: true}
	for name, tc := range map[string]struct {
		by   booking.Caller
		id   string
		want fault.Kind // empty: allowed
	}{
		"the owner's project": {by: booking.Caller{ProjectID: owner.ProjectID, UserID: "another"}, id: "r001"},
		"an admin":            {by: admin, id: "r001"},
		"another project":     {by: projects[1], id: "r001", want: fault.NotFound},
		"an unknown id":       {by: admin, id: "r999", want: fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a"))
			s.book(t, during(1, 100, 200))
			_, offered := s.bookings.OfferChange(t.Context(), tc.by, tc.id, ends(300))
			_, changed := s.bookings.Change(t.Context(), tc.by, tc.id, ends(300))
			_, canceled := s.bookings.Cancel(t.Context(), tc.by, tc.id)
			for act, err := range map[string]error{"offer a change": offered, "change": changed, "cancel": canceled} {
				if tc.want == "" && err != nil || tc.want != "" && !fault.Is(err, tc.want) {
					t.Errorf("%s: %v, want %q", act, err, tc.want)
				}
			}
		})
	}
}

func TestAReservationThatIsOverCannotBeChanged(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.book(t, during(1, 100, 200))
	ended := s.book(t, during(1, 0, 50))
	if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
		t.Fatal(err)
	}
	s.passTo(t, at(60))
	for id, want := range map[string]string{r.ID: "the reservation is canceled", ended.ID: "the reservation is ended"} {
		_, cancelErr := s.bookings.Cancel(t.Context(), owner, id)
		_, changeErr := s.bookings.Change(t.Context(), owner, id, ends(300))
		for act, err := range map[string]error{"cancel": cancelErr, "change": changeErr} {
			if !fault.Is(err, fault.Conflict) || err.Error() != want {
				t.Errorf("%s %s: %v, want a conflict: %s", act, id, err, want)
			}
		}
	}
}

func TestACanceledReservationKeepsWhatItHasUsed(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(1, 100, 200))
	ahead := s.book(t, during(1, 300, 400))
	s.passTo(t, at(130))
	for id, want := range map[string][]reservation.Claim{
		r.ID: {{Host: "a", Span: span.Span{Start: at(100), End: at(130)}}}, ahead.ID: nil,
	} {
		got, err := s.bookings.Cancel(t.Context(), owner, id)
		if diff := cmp.Diff(want, got.Claims); err != nil || diff != "" || got.Status != reservation.Canceled {
			t.Errorf("%s is %s, %v; claims (-want +got):\n%s", id, got.Status, err, diff)
		}
	}
	s.book(t, during(2, 130, 500))
	s.check(t)
}

// A filter on a start now refers to what is free now.
func TestANearerStartNeedsHostsThatMatchThen(t *testing.T) {
	hosts := named("a", "b")
	hosts[0].Used.MemoryMB = 8000
	s := newScene(t, hosts)
	req := during(1, 100, 200)
	req.HostProperties = `[">=", "$free_ram_mb", 10000]`
	r := s.book(t, req)
	if diff := cmp.Diff([]string{"a"}, claimed(r)); diff != "" {
		t.Fatalf("hosts (-want +got):\n%s", diff)
	}
	if got := claimed(s.change(t, r.ID, starts(10))); got[0] != "a" {
		t.Errorf("with the start at 10, the host is %v, want a", got)
	}
	if got := claimed(s.change(t, r.ID, starts(0))); got[0] != "b" {
		t.Errorf("with the start now, the host is %v, want b", got)
	}
}

// The start has passed and is not carried out yet. A host added since then was not held from
// the start.
func TestTimeThatWasNotHeldIsNotClaimedAfterwards(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, cpus(2, 2, 100, 200))
	s.now.Store(int64(at(150)))
	s.change(t, r.ID, quantity(5))
	s.now.Store(int64(at(160)))
	want := []reservation.Claim{
		{Host: "a", Span: span.Span{Start: at(150), End: at(190)}, Slices: 4},
		{Host: "b", Span: span.Span{Start: at(150), End: at(190)}, Slices: 1},
	}
	if diff := cmp.Diff(want, s.change(t, r.ID, ends(190)).Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	s.check(t)
}

// A change moves a reservation of a sleeping host to an earlier start.
func TestAnEarlierStartNeedsHostsThatAreAwake(t *testing.T) {
	hosts := named("a", "b")
	hosts[0].Power, hosts[0].BootSeconds, hosts[0].FlopsPerWatt = inventory.PowerSleeping, 60, 1
	s := newScene(t, hosts)
	r := s.book(t, during(1, 100, 200))
	if diff := cmp.Diff([]string{"a"}, claimed(r)); diff != "" {
		t.Fatalf("hosts (-want +got):\n%s", diff)
	}
	if got := claimed(s.change(t, r.ID, starts(60))); got[0] != "a" {
		t.Errorf("with the start at 60, the host is %v, want a", got)
	}
	if got := claimed(s.change(t, r.ID, starts(59))); got[0] != "b" {
		t.Errorf("with the start at 59, the host is %v, want b", got)
	}
}

// A host that has failed since stays the reservation's, and nobody else's.
func TestTheEarliestStartOfAChangeMayBeThePresentOneOnAHostThatHasFailed(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(2, 100, 1000))
	s.host("b").Power = inventory.PowerFailed
	s.observe(t)
	c := planning.Change{Start: new(at(50)), End: new(at(900))}
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, c)
	if got := refusal(t, err).EarliestStart; got != at(100) {
		t.Fatalf("the earliest start is %v, want the present one, %v", got, at(100))
	}
	c = planning.Change{Start: new(at(100)), End: new(at(950))}
	if _, err := s.bookings.OfferChange(t.Context(), owner, r.ID, c); err != nil {
		t.Errorf("the earliest start is refused: %v", err)
	}
}
