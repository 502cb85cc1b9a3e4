// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The leases of these tests last from 600 to 4200 seconds after the start of the scene, with a
// warning at 3600; see leaseOf.

func (s *scene) changeLease(t tester, id string, c reservation.LeaseChange) reservation.LeaseRecord {
	t.Helper()
	l, err := s.bookings.ChangeLease(t.Context(), owner, id, c)
	if err != nil {
		t.Fatalf("change lease %s: %v", id, err)
	}
	return l
}

func (s *scene) cancelLease(t tester, id string) reservation.LeaseRecord {
	t.Helper()
	l, err := s.bookings.CancelLease(t.Context(), owner, id)
	if err != nil {
		t.Fatalf("cancel lease %s: %v", id, err)
	}
	return l
}

// leases returns all leases that are shown.
func (s *scene) leases(t tester) []reservation.LeaseRecord {
	t.Helper()
	states, err := s.memory.LeaseStates(t.Context(), reservation.LeaseQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, state := range states {
		ids = append(ids, state.ID)
	}
	list, err := s.memory.LeasesOf(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// timed changes the times of a lease, in seconds after base; 0 leaves a time as it is.
func timed(start, end int64) (c reservation.LeaseChange) {
	if start != 0 {
		c.Start = new(at(start))
	}
	if end != 0 {
		c.End = new(at(end))
	}
	return c
}

// bounds changes the bounds of one reservation.
func bounds(id string, least, most int) reservation.LeaseChange {
	return reservation.LeaseChange{Members: []reservation.MemberChange{{ID: id, Min: &least, Max: &most}}}
}

// checkLeases checks that each lease and its live reservations have the same times.
func (s *scene) checkLeases(t tester) {
	t.Helper()
	for _, l := range s.leases(t) {
		for _, r := range l.Reservations {
			if !r.Status.Live() {
				continue
			}
			late := int64(r.Span.Start - l.Span.Start) // if its requested start was in the past
			if r.Span.End != l.Span.End || late < 0 || late > planning.LatestPast {
				t.Fatalf("lease %s lasts %v, its reservation %s %v", l.ID, l.Span, r.ID, r.Span)
			}
			warned := max(r.Span.End-span.Instant(r.BeforeEnd), l.Span.Start)
			if r.BeforeEnd != 0 && warned != max(l.BeforeEnd, l.Span.Start) {
				t.Fatalf("the warning of lease %s is at %v, that of its reservation %s at %v", l.ID, l.BeforeEnd, r.ID, warned)
			}
		}
	}
}

// refuses checks that an action fails in the expected way and leaves everything as it was.
func (s *scene) refuses(t *testing.T, what string, want func(error) bool, act func() error) {
	t.Helper()
	before, stored := s.leases(t), s.stored(t)
	if err := act(); !want(err) {
		t.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(before, s.leases(t)) + cmp.Diff(stored, s.stored(t)); diff != "" {
		t.Errorf("%s changes (-before +after):\n%s", what, diff)
	}
	s.check(t)
}

// says returns a check for a fault of a kind whose message contains text.
func says(kind fault.Kind, text string) func(error) bool {
	return func(err error) bool { return fault.Is(err, kind) && strings.Contains(fault.Of(err).Message, text) }
}

func isRefusal(err error) bool {
	_, is := errors.AsType[*reservation.Refusal](err)
	return is
}

func TestANewTimeOfALeaseIsThatOfAllItsReservations(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), whole(1, 1), small(3)))
	hosts := func(l reservation.LeaseRecord) (list []string) {
		for _, r := range l.Reservations {
			list = append(list, claimed(r)...)
		}
		return list
	}
	moved := s.changeLease(t, l.ID, timed(1200, 9000))
	if moved.Span != (span.Span{Start: at(1200), End: at(9000)}) || moved.BeforeEnd != at(8400) || moved.Version != 2 {
		t.Errorf("the lease is %+v", moved.Lease)
	}
	if diff := cmp.Diff(hosts(l), hosts(moved)); diff != "" {
		t.Errorf("it does not keep its hosts (-before +after):\n%s", diff)
	}
	for _, r := range moved.Reservations {
		if r.Span != moved.Span || r.BeforeEnd != 600 || r.Version != 2 || r.Quantity != max(1, r.Membership.Min) {
			t.Errorf("a reservation is %+v", r)
		}
	}
	s.checkLeases(t)
	s.check(t)
	if diff := cmp.Diff([]reservation.LeaseRecord{moved}, s.leases(t)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	s.restart(t)
	s.check(t)
}

func TestAChangeOfALeaseOfWhichOnePartIsRefusedChangesNothing(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), small(1)))
	s.book(t, only(claimed(l.Reservations[0])[0], during(1, 4200, 9000)))
	s.book(t, during(2, 5000, 9000))
	both := timed(0, 4800)
	both.Members = bounds(l.Reservations[1].ID, 30, 30).Members
	s.refuses(t, "more instances than there is room for", isRefusal, func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, both)
		return err
	})
	s.refuses(t, "an end at which there is no room", isRefusal, func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, timed(0, 6000))
		return err
	})
	s.changeLease(t, l.ID, timed(0, 4800))
	s.checkLeases(t)
}

func TestTheRulesForTheTimesOfALease(t *testing.T) {
	const (
		started, past = "Cannot modify the start date of already started leases", "Start date must be later than current date"
		over, end     = "Terminated leases can only be renamed", "End date must be later than current and start date"
	)
	invalid := func(text string) func(error) bool { return says(fault.Invalid, text) }
	accepted := func(err error) bool { return err == nil }
	with := func(c reservation.LeaseChange, warning int64) reservation.LeaseChange {
		c.BeforeEnd = new(at(warning))
		return c
	}
	for name, tc := range map[string]struct {
		now    int64
		change reservation.LeaseChange
		want   func(error) bool
	}{
		"another start before it begins":               {0, timed(900, 0), accepted},
		"a start in the present minute":                {200, timed(100, 0), accepted},
		"a start that is too old":                      {300, timed(100, 0), invalid(past)},
		"another start once it has begun":              {601, timed(900, 0), invalid(started)},
		"the same start once it has begun":             {601, timed(600, 5000), accepted},
		"an earlier start once it has begun":           {601, timed(580, 5000), invalid(started)},
		"a longer time":                                {601, timed(0, 5000), accepted},
		"a shorter time":                               {601, timed(0, 700), accepted},
		"an end before the start":                      {0, timed(0, 600), invalid(end)},
		"a start after the end":                        {0, timed(4200, 0), invalid(end)},
		"an end that passed long ago":                  {1000, timed(0, 879), invalid(end)},
		"an end in the present minute":                 {1000, timed(0, 980), accepted},
		"an end now":                                   {1000, timed(0, 1000), accepted},
		"an end now before it begins":                  {100, timed(0, 100), invalid(end)},
		"an end beyond all years":                      {0, reservation.LeaseChange{End: new(span.Forever)}, invalid("")},
		"an end in the year 3000":                      {0, reservation.LeaseChange{End: new(span.Instant(32_503_680_000))}, invalid("")},
		"a new time once it is over":                   {4200, timed(0, 9000), invalid(over)},
		"a warning within it":                          {0, with(reservation.LeaseChange{}, 4000), accepted},
		"a warning at its start":                       {0, with(reservation.LeaseChange{}, 600), accepted},
		"a warning before its start":                   {0, with(reservation.LeaseChange{}, 599), says(fault.Denied, "Datetime is out of lease limits")},
		"a warning after its end":                      {0, with(timed(0, 4000), 4001), says(fault.Denied, "Datetime is out of lease limits")},
		"a warning after the old end, but not the new": {0, with(timed(0, 5000), 4999), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a"))
			l := s.lease(t, leaseOf(whole(1, 1)))
			s.passTo(t, at(tc.now))
			if tc.want(nil) {
				s.changeLease(t, l.ID, tc.change)
				s.checkLeases(t)
				s.check(t)
				return
			}
			s.refuses(t, name, tc.want, func() error {
				_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, tc.change)
				return err
			})
		})
	}
}

func TestALeaseThatIsOverCanBeRenamed(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	s.passTo(t, at(600))
	s.passTo(t, at(4200))
	after := s.changeLease(t, l.ID, reservation.LeaseChange{Name: new("seminar")})
	if after.Name != "seminar" || after.Version != 2 || after.Reservations[0].Name != "course" {
		t.Errorf("got %+v", after)
	}
	if same := s.changeLease(t, l.ID, reservation.LeaseChange{Name: new("seminar")}); same.Version != 2 {
		t.Errorf("the same name is stored again, as version %d", same.Version)
	}
}

func TestTheWarningKeepsItsDistanceToTheEndAndIsSentAgain(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	id := l.Reservations[0].ID
	warnings := func() (at []span.Instant) {
		for _, e := range s.get(t, id).Events {
			if e.Type == reservation.BeforeEndEvent {
				at = append(at, e.Time)
			}
		}
		return at
	}
	s.passTo(t, at(600))
	s.passTo(t, at(3600)) // it is sent
	if l = s.changeLease(t, l.ID, timed(0, 6000)); l.BeforeEnd != at(5400) {
		t.Errorf("the warning is at %v, want as long before the end as before", l.BeforeEnd)
	}
	if got := warnings(); !slices.Equal(got, []span.Instant{at(3600), at(5400)}) {
		t.Errorf("there are warnings at %v, want another one", got)
	}
	s.passTo(t, at(3700))
	if l = s.changeLease(t, l.ID, timed(0, 3900)); l.BeforeEnd != at(3300) {
		t.Errorf("the warning is at %v", l.BeforeEnd)
	}
	empty := leaseOf()
	empty.Start, empty.End, empty.BeforeEnd = at(4000), at(5000), at(4900)
	other := s.lease(t, empty)
	if other = s.changeLease(t, other.ID, timed(0, 6000)); other.BeforeEnd != at(5900) {
		t.Errorf("the warning of a lease without reservations is at %v", other.BeforeEnd)
	}
}

func TestTheWarningOfAShortLeaseIsAtItsStart(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	if l = s.changeLease(t, l.ID, timed(0, 1000)); l.BeforeEnd != at(600) {
		t.Errorf("the warning is at %v, want the start", l.BeforeEnd)
	}
	s.checkLeases(t)
}

func TestAnEndOfThePresentMinuteEndsTheLeaseNow(t *testing.T) {
	s := newScene(t, named("a", "b"))
	l := s.lease(t, leaseOf(whole(1, 1), small(1)))
	s.passTo(t, at(650))
	s.now.Store(int64(at(1000)))
	if l = s.changeLease(t, l.ID, timed(0, 970)); l.Span.End != at(1000) {
		t.Errorf("the lease ends at %v, want now", l.Span.End)
	}
	s.book(t, during(2, 1000, 1100)) // its hosts are free at once
	s.passTo(t, at(1000))
	for _, r := range l.Reservations {
		if r := s.get(t, r.ID); r.Status != reservation.Ended || r.Span.End != at(1000) {
			t.Errorf("the reservation is %s and ends at %v, want ended, now", r.Status, r.Span.End)
		}
	}
	if list := s.leases(t); len(list) != 2 || list[0].ID != l.ID {
		t.Errorf("the leases are %+v, want the ended one among them", list)
	}
}

func TestALeaseEndsInTheSecondOfItsStart(t *testing.T) {
	s := newScene(t, named("a"))
	req := leaseOf(whole(1, 1))
	req.Start, req.BeforeEnd = at(-30), 0
	l := s.lease(t, req)
	s.passTo(t, at(0))
	if l = s.changeLease(t, l.ID, timed(0, -30)); l.Span.End != at(1) {
		t.Errorf("the lease ends at %v, want a second after the start of its reservation", l.Span.End)
	}
	s.passTo(t, at(1))
	if r := s.get(t, l.Reservations[0].ID); r.Status != reservation.Ended {
		t.Errorf("the reservation is %s", r.Status)
	}
}

func TestWhatStillWaitsForItsStartIsCanceledByAnEndNow(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	s.now.Store(int64(at(700))) // nothing has carried the start out
	l = s.changeLease(t, l.ID, timed(0, 700))
	if r := l.Reservations[0]; r.Status != reservation.Canceled || len(r.Claims) > 0 && r.Claims[0].Span.End > at(700) {
		t.Errorf("the reservation is %+v", r)
	}
	if l.Span.End != at(700) {
		t.Errorf("the lease ends at %v", l.Span.End)
	}
	s.check(t)
}

// The limit counts from the start, also while a reservation waits for it.
func TestALateStartAddsNothingToTheLongestDuration(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{Duration: 100}))
	r := s.book(t, during(1, 0, 20))
	s.now.Add(13)
	c := reservation.LeaseChange{Duration: 110, Members: []reservation.MemberChange{{ID: r.ID, HostProperties: new(`["=", "$name", "a"]`)}}}
	_, err := s.bookings.ChangeLease(t.Context(), owner, r.ID, c)
	if refusal(t, err).Constraint != reservation.MaxDuration {
		t.Errorf("refused by %v", err)
	}
	c.Duration = 100
	if _, err := s.bookings.ChangeLease(t.Context(), owner, r.ID, c); err != nil {
		t.Errorf("with the longest duration: %v", err)
	}
	s.check(t)
}
