// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// What the project holds at other times does not count.
func TestALimitOnHostsCountsThoseHeldAtOneInstant(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d"), limited(planning.Limits{Hosts: 3}))
	s.book(t, during(3, 100, 200))
	s.book(t, during(3, 300, 400))
	s.book(t, during(3, 200, 300))
	s.book(t, cpus(1, 3, 400, 500)) // instances count as hosts
	for name, req := range map[string]reservation.Request{
		"in the middle":        during(1, 150, 160),
		"the last second":      during(1, 50, 101),
		"the first second":     during(1, 499, 600),
		"across all":           during(1, 50, 600),
		"an instance":          cpus(1, 1, 350, 360),
		"beside the instances": during(1, 450, 460),
	} {
		_, err := s.bookings.Book(t.Context(), owner, req, nil)
		if got := refusal(t, err); got.Constraint != reservation.MaxHosts || len(got.BlockedBy) > 0 || got.EarliestStart != at(500) || got.LargestQuantity != 0 {
			t.Errorf("%s: %v, blocked by %v, earliest %v, at most %d; want %s, nothing, %v and 0",
				name, got, got.BlockedBy, got.EarliestStart, got.LargestQuantity, reservation.MaxHosts, at(500))
		}
	}
	if _, err := s.bookings.Book(t.Context(), projects[1], during(1, 50, 600), nil); err != nil {
		t.Errorf("another project: %v", err)
	}
	s.restart(t)
	_, err := s.bookings.Book(t.Context(), owner, during(1, 150, 160), nil)
	refusal(t, err)
	s.check(t)
}

// The refusal names the first start at which the limit holds and the hosts have room, and the
// largest quantity for the requested window.
func TestARefusalByALimitSaysWhenItIsKept(t *testing.T) {
	wide := func(quantity int, start, end, duration int64) reservation.Request {
		req := during(quantity, start, end)
		req.Duration = duration
		return req
	}
	for name, tc := range map[string]struct {
		req      reservation.Request
		earliest span.Instant
		largest  int
		message  string
	}{
		"the hosts are held by another until 260": {during(2, 100, 150), at(260), 1, "the project would hold 4 hosts at 2033-05-18T03:35:00Z; it may hold 3 at once"},
		"the first break is named":                {during(3, 40, 160), at(300), 1, "the project would hold 4 hosts at 2033-05-18T03:34:10Z; it may hold 3 at once"},
		"more than ever":                          {during(4, 0, 10), 0, 3, "the request is for 4 hosts; a project may hold 3 at once"},
		"in no start of a window": {
			wide(2, 100, 200, 50), at(260), 1, "the project may hold 3 hosts at once; it would hold more from each start between 2033-05-18T03:35:00Z and 2033-05-18T03:35:50Z",
		},
		"the limit here, the hosts there": {
			wide(2, 150, 255, 50), at(260), 1, "the project may hold 3 hosts at once; it would hold more from each start at which there is room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c", "d"), limited(planning.Limits{Hosts: 3}))
			s.book(t, during(1, 50, 100))
			s.book(t, during(2, 100, 200))
			for _, req := range []reservation.Request{during(3, 200, 260), during(2, 260, 300)} {
				if _, err := s.bookings.Book(t.Context(), projects[1], req, nil); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.bookings.Book(t.Context(), owner, tc.req, nil)
			got := refusal(t, err)
			want := reservation.Refusal{
				Constraint: reservation.MaxHosts, Message: tc.message, Matched: 4, Free: got.Free, EarliestStart: tc.earliest, LargestQuantity: tc.largest,
				Wanted: got.Wanted,
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// Such a refusal names the hosts, because waiting for the limit would not help.
func TestWhatNoHostCouldHoldIsNotRefusedByALimit(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(planning.Limits{Hosts: 2}))
	s.book(t, during(2, 100, 200))
	_, err := s.bookings.Book(t.Context(), owner, cpus(1000, 1, 100, 200), nil)
	if got := refusal(t, err); got.Constraint == reservation.MaxHosts || got.EarliestStart != 0 {
		t.Errorf("%v, earliest %v; want another constraint and no earliest start", got, got.EarliestStart)
	}
}

// The rule holds for every policy.
func TestAWindowIsSearchedForAStartThatKeepsTheLimit(t *testing.T) {
	for _, policy := range calendar.Policies {
		t.Run(string(policy), func(t *testing.T) {
			s := newScene(t, named("a", "b", "c", "d"), limited(planning.Limits{Hosts: 3}))
			s.book(t, during(2, 100, 200))
			s.book(t, during(2, 230, 300))
			s.book(t, during(2, 360, 500))
			req := during(2, 100, 400)
			req.Duration, req.Policy = 50, policy
			if r := s.book(t, req); r.Span.Start < at(300) || r.Span.End > at(360) {
				t.Errorf("the span is %v, want 50 s between %v and %v", r.Span, at(300), at(360))
			}
			s.check(t)
		})
	}
	s := newScene(t, named("a", "b"), limited(planning.Limits{Hosts: 3}))
	s.book(t, during(2, 100, 200))
	req := cpus(1, 2, 100, 400)
	req.Duration = 50
	if r := s.book(t, req); r.Span != span.New(at(200), 50) {
		t.Errorf("the span of instances is %v, want 50 s from %v", r.Span, at(200))
	}
}

func TestHostHoursAreCountedOverAllLiveReservations(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(planning.Limits{HostSeconds: 250}))
	first := s.book(t, during(2, 100, 200))    // 200 host-seconds
	first = s.change(t, first.ID, quantity(1)) // 100 host-seconds
	second := s.book(t, during(1, 300, 450))   // 250 host-seconds in all
	s.restart(t)
	_, err := s.bookings.Change(t.Context(), owner, first.ID, ends(201))
	if got := refusal(t, err); got.Constraint != reservation.MaxHostHours || got.LargestQuantity != 0 || len(got.BlockedBy) > 0 {
		t.Errorf("one more second, after a restart: %v, at most %d, blocked by %v; want %s, 0 and nothing",
			got, got.LargestQuantity, got.BlockedBy, reservation.MaxHostHours)
	}
	if _, err := s.bookings.Cancel(t.Context(), owner, second.ID); err != nil {
		t.Fatal(err)
	}
	s.change(t, first.ID, ends(350))
	s.passTo(t, at(400)) // the first has ended
	s.book(t, during(2, 400, 525))
	s.check(t)
}

func TestALimitRefusesAChangeOnlyForWhatItAsksMoreOf(t *testing.T) {
	lowered := planning.Limits{Duration: 50, StartAhead: 10, Hosts: 1, HostSeconds: 60}
	for name, tc := range map[string]struct {
		change   planning.Change
		want     reservation.Constraint // empty: accepted
		earliest span.Instant
	}{
		"rename":                    {change: renamed("night run")},
		"shrink":                    {change: quantity(1)},
		"shorten":                   {change: ends(180)},
		"later start, the same end": {change: starts(120), want: reservation.MaxStartAhead},
		"an earlier time":           {change: moves(50, 150), want: reservation.MaxHosts, earliest: at(100)},
		"an earlier time for one":   {change: planning.Change{Quantity: new(1), Start: new(at(50)), End: new(at(150))}},
		"a later time":              {change: moves(110, 210), want: reservation.MaxStartAhead},
		"extend":                    {change: ends(201), want: reservation.MaxDuration},
		"grow":                      {change: quantity(3), want: reservation.MaxHostHours},
		"grow and shorten":          {change: planning.Change{Quantity: new(3), End: new(at(120))}, want: reservation.MaxHosts},
		"extend and shrink":         {change: planning.Change{Quantity: new(1), End: new(at(201))}, want: reservation.MaxDuration},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			r := s.book(t, during(2, 100, 200))
			s.options.Limits = lowered
			s.restart(t)
			_, err := s.bookings.Change(t.Context(), owner, r.ID, tc.change)
			if tc.want == "" && err == nil {
				return
			}
			if got := refusal(t, err); got.Constraint != tc.want || got.EarliestStart != tc.earliest {
				t.Errorf("%v with earliest start %v, want %q and %v", got, got.EarliestStart, tc.want, tc.earliest)
			}
		})
	}
}

// At each instant, the hosts after the change and the project's other hosts count.
func TestAChangeIsHeldAgainstTheHostsAtEachInstant(t *testing.T) {
	for name, tc := range map[string]struct {
		now     int64
		change  planning.Change
		refused bool
		largest int
	}{
		"grow where there is room":             {change: quantity(3)},
		"extend up to what follows":            {change: ends(250)},
		"extend into what follows":             {change: ends(251), refused: true, largest: 1},
		"extend into it with fewer":            {change: planning.Change{Quantity: new(1), End: new(at(300))}},
		"grow and extend":                      {change: planning.Change{Quantity: new(3), End: new(at(250))}},
		"grow too much":                        {change: quantity(4), refused: true, largest: 3},
		"move into what follows":               {change: moves(300, 400), refused: true, largest: 1},
		"move behind it":                       {change: moves(350, 450)},
		"extend an active one":                 {now: 150, change: ends(251), refused: true, largest: 1},
		"extend an active one, with fewer":     {now: 150, change: planning.Change{Quantity: new(1), End: new(at(300))}},
		"grow an active one beside what comes": {now: 150, change: quantity(3)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c", "d", "e", "f"), limited(planning.Limits{Hosts: 3}))
			r := s.book(t, during(2, 100, 200)) // on a and b
			s.book(t, only("c", during(1, 250, 350)))
			s.book(t, only("d", during(1, 250, 350)))
			s.passTo(t, at(tc.now))
			_, err := s.bookings.Change(t.Context(), owner, r.ID, tc.change)
			if !tc.refused {
				if err != nil {
					t.Error(err)
				}
				s.check(t)
				return
			}
			if got := refusal(t, err); got.Constraint != reservation.MaxHosts || got.LargestQuantity != tc.largest {
				t.Errorf("%v, at most %d; want %s and %d", got, got.LargestQuantity, reservation.MaxHosts, tc.largest)
			}
		})
	}
}

func TestHostTimeOfAChange(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(planning.Limits{HostSeconds: 300}))
	r := s.book(t, during(2, 100, 200)) // 200 host-seconds
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, ends(251))
	if got := refusal(t, err); got.Constraint != reservation.MaxHostHours || got.LargestQuantity != 1 {
		t.Errorf("2 for 151 s: %v, at most %d; want %s and 1", got, got.LargestQuantity, reservation.MaxHostHours)
	}
	s.change(t, r.ID, ends(250))
	s.change(t, r.ID, planning.Change{Quantity: new(3), End: new(at(200))})
	s.check(t)
	s.options.Limits = planning.Limits{HostSeconds: 10}
	s.restart(t)
	s.change(t, r.ID, planning.Change{Quantity: new(2), End: new(at(250))}) // longer, but no more host time
	_, err = s.bookings.OfferChange(t.Context(), owner, r.ID, ends(251))
	if got := refusal(t, err).Constraint; got != reservation.MaxHostHours {
		t.Errorf("more host time: refused by %s, want %s", got, reservation.MaxHostHours)
	}
}

// Its host time is less than its hosts multiplied by its duration, and other reservations use
// the rest of the limit.
func TestWhatGrewLateMayShrinkAtTheLimit(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(planning.Limits{HostSeconds: 300}))
	r := s.book(t, during(1, 100, 200))
	s.passTo(t, at(190))
	s.change(t, r.ID, quantity(3)) // 100 + 2 × 10 host-seconds
	s.book(t, during(1, 200, 380)) // and 180
	s.change(t, r.ID, quantity(2))
	s.check(t)
}

// A project cannot erase host time that it has used by releasing the hosts before the end.
func TestReleasedHostTimeCountsAsLongAsTheReservationLives(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(planning.Limits{HostSeconds: 300}))
	r := s.running(t, during(3, 100, 200))
	s.passTo(t, at(190))
	s.change(t, r.ID, quantity(1)) // 100, and 2 × 90 host-seconds that are past
	if _, use := s.bookings.Use(owner.ProjectID); use.HostSeconds != 280 {
		t.Errorf("the project uses %d host-seconds, want 280", use.HostSeconds)
	}
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, ends(221))
	if got := refusal(t, err).Constraint; got != reservation.MaxHostHours {
		t.Errorf("21 s more are refused by %s, want %s", got, reservation.MaxHostHours)
	}
	s.change(t, r.ID, ends(220))
	s.check(t)
	s.restart(t)
	if _, use := s.bookings.Use(owner.ProjectID); use.HostSeconds != 300 {
		t.Errorf("after a restart the project uses %d host-seconds, want 300", use.HostSeconds)
	}
}

func TestAnExtensionIsAcceptedOnlyNearTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		now    int64
		change planning.Change
		want   reservation.Constraint // empty: accepted
	}{
		"too early":                {now: 169, change: ends(300), want: reservation.ExtensionTooEarly},
		"near the end":             {now: 170, change: ends(300)},
		"before the start":         {now: 0, change: ends(300), want: reservation.ExtensionTooEarly},
		"by an earlier start":      {now: 0, change: starts(50), want: reservation.ExtensionTooEarly},
		"another time is none":     {now: 0, change: moves(400, 500)},
		"nor is an end before":     {now: 120, change: ends(180)},
		"nor are more hosts":       {now: 120, change: quantity(3)},
		"nor a new name":           {now: 120, change: renamed("x")},
		"with fewer hosts it is":   {now: 120, change: planning.Change{Quantity: new(1), End: new(at(300))}, want: reservation.ExtensionTooEarly},
		"an end that is not later": {now: 120, change: ends(200)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"), limited(planning.Limits{ExtensionWindow: 30}))
			r := s.book(t, during(2, 100, 200))
			s.passTo(t, at(tc.now))
			_, err := s.bookings.Change(t.Context(), owner, r.ID, tc.change)
			if tc.want == "" && err == nil {
				return
			}
			if got := refusal(t, err); got.Constraint != tc.want || got.LargestQuantity != 0 {
				t.Errorf("%v with at most %d, want %q and 0", got, got.LargestQuantity, tc.want)
			}
		})
	}
}

func TestTheExtensionWindowCountsFromTheLatestEndThatWasPromised(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{ExtensionWindow: 30}))
	r := s.book(t, during(1, 100, 200))
	s.passTo(t, at(120))
	for _, step := range []struct {
		to      int64
		refused bool
	}{
		{160, false}, {300, true}, {140, false}, {210, true}, // shortened twice, it is as early as before
		{180, false}, {200, false}, {201, true}, // and back to what was promised
	} {
		_, err := s.bookings.Change(t.Context(), owner, r.ID, ends(step.to))
		if refused := err != nil; refused != step.refused {
			t.Errorf("an end at %d: %v, want it refused: %v", step.to, err, step.refused)
		}
	}
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, ends(180)); err != nil {
		t.Fatal(err)
	}
	s.passTo(t, at(170))
	got := s.change(t, r.ID, ends(300))
	if got.Span.End != at(300) || got.PromisedEnd != 0 {
		t.Errorf("in the window of the promised end, it ends at %v, promised %v", got.Span.End, got.PromisedEnd)
	}
}

// A lease whose reservation gets another filter is planned as a new one. The window counts all the same.
func TestTheExtensionWindowCountsWithAnotherFilterToo(t *testing.T) {
	for name, tc := range map[string]struct {
		end  int64
		want reservation.Constraint
	}{
		"a later end":    {300, reservation.ExtensionTooEarly},
		"the same end":   {200, ""},
		"an earlier end": {180, ""},
	} {
		s := newScene(t, named("a", "b"), limited(planning.Limits{ExtensionWindow: 30}))
		l := s.lease(t, reservation.LeaseRequest{Start: at(100), End: at(200), Members: []reservation.MemberRequest{whole(1, 1)}})
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{
			End: new(at(tc.end)), Members: []reservation.MemberChange{{ID: l.Reservations[0].ID, HostProperties: new(`["=", "$name", "b"]`)}},
		})
		if tc.want == "" && err == nil {
			continue
		}
		if got := refusal(t, err); got.Constraint != tc.want {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// Neither a booking nor a refusal looks further ahead.
func TestAStartIsLookedForUpToTheHorizon(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{StartAhead: 100}))
	s.book(t, during(1, 50, 100))
	req := during(1, 20, 1000)
	req.Duration = 60
	plan, err := s.bookings.Offer(t.Context(), owner, req)
	if err != nil || plan.Span != span.New(at(100), 60) {
		t.Errorf("just at the horizon: %v, %v; want 60 s from %v", plan.Span, err, at(100))
	}
	asleep := named("b")
	asleep[0].Power, asleep[0].BootSeconds = inventory.PowerSleeping, 101
	s.hosts = append(s.hosts, asleep...)
	s.observe(t)
	s.book(t, during(1, 100, 101))
	_, err = s.bookings.Offer(t.Context(), owner, only("b", reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 60}))
	if got := refusal(t, err).EarliestStart; got != 0 {
		t.Errorf("a host that boots beyond the horizon: earliest %v, want none", got)
	}
	_, err = s.bookings.Offer(t.Context(), owner, req)
	if got := refusal(t, err); got.Constraint != reservation.MaxStartAhead || got.EarliestStart != 0 || got.LargestQuantity != 0 {
		t.Errorf("beyond the horizon: %v, earliest %v, at most %d; want %s and neither", got, got.EarliestStart, got.LargestQuantity, reservation.MaxStartAhead)
	}
}

// The next decision counts the growth before the records report it as stored.
func TestAGrowthThatIsBeingStoredCountsForTheLimit(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		r := b.book(t, only("a", during(1, 100, 200)))
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() { b.change(t, r.ID, ends(300)) })
		synctest.Wait()
		running.Go(func() { b.book(t, only("b", during(1, 250, 300))) }) // the second commit, which waits for its turn
		synctest.Wait()
		_, err := b.bookings.Book(t.Context(), owner, only("c", during(1, 250, 300)), nil)
		refusal(t, err)
		close(goOn)
		running.Wait()
		agree(t, []*scene{a, b})
	}, limited(planning.Limits{Hosts: 2}))
}

// The records refuse the growth if the project has booked more since the decision.
func TestAGrowthThatAnotherReplicaDoesNotKnowIsDecidedAgain(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		r := b.book(t, only("a", during(1, 100, 200)))
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() {
			_, err := b.bookings.Change(t.Context(), owner, r.ID, ends(300))
			if got := refusal(t, err); got.Constraint != reservation.MaxHosts {
				t.Errorf("%v, want %s", got, reservation.MaxHosts)
			}
		})
		synctest.Wait()
		a.book(t, only("b", during(1, 250, 300)))
		a.book(t, only("c", during(1, 250, 300)))
		close(goOn)
		running.Wait()
		agree(t, []*scene{a, b})
	}, limited(planning.Limits{Hosts: 2}))
}

// A replica that has read another replica's bookings for a project decides only once.
func TestReplicasThatFollowBookForOneProjectInTurn(t *testing.T) {
	all := replicas(t, 3, named("a", "b", "c"), limited(planning.Limits{Hosts: 3}))
	for i := range int64(12) {
		for _, s := range all {
			s.follow(t)
		}
		all[i%3].book(t, only(string(rune('a'+i%3)), during(1, 100+10*i, 110+10*i)))
	}
	for _, s := range all {
		if n := s.bookings.Stale(); n > 0 {
			t.Errorf("%s decided %d times again", s.options.Replica, n)
		}
	}
	agree(t, all)
}

// unlogged are records whose log lacks a reservation.
type unlogged struct {
	booking.Records
	id string
}

func (u unlogged) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	got, err := u.Records.Recall(ctx, q)
	if err != nil || q.All {
		return got, err
	}
	return withoutInLog(ctx, u.Records, q, got.Log, map[string]bool{u.id: true})
}

// When a replica learns that a project holds more, it reads everything that the project holds,
// even if the log lacks some of it.
func TestWhatAReplicaKnowsOfAProjectItKnowsWhole(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		g.Records = unlogged{a.memory, a.book(t, only("a", during(1, 100, 200))).ID}
		a.book(t, only("b", during(1, 100, 200)))
		b.follow(t)
		_, err := b.bookings.Book(t.Context(), owner, only("c", during(1, 100, 200)), nil)
		if got := refusal(t, err); got.Constraint != reservation.MaxHosts || b.bookings.Stale() > 0 {
			t.Errorf("%v after %d more decisions, want %s", got, b.bookings.Stale(), reservation.MaxHosts)
		}
		agree(t, []*scene{a, b})
	}, limited(planning.Limits{Hosts: 2}))
}

// The commits of such a project carry no version of it.
func TestAProjectWithoutALimitDoesNotWaitForItself(t *testing.T) {
	all := replicas(t, 2, named("a", "b"))
	for i := range int64(5) {
		all[0].book(t, only("a", during(1, 10*i, 10*i+10)))
		all[1].book(t, only("b", during(1, 10*i, 10*i+10)))
	}
	for _, s := range all {
		if n := s.bookings.Stale(); n > 0 {
			t.Errorf("%s decided %d times again", s.options.Replica, n)
		}
	}
	agree(t, all)
}

// What was booked without a limit counts.
func TestALimitThatIsSetLaterHoldsAcrossReplicas(t *testing.T) {
	all := replicas(t, 2, named("a", "b", "c"))
	all[0].book(t, during(2, 100, 200))
	for _, s := range all {
		s.bookings.Configure(planning.Limits{Hosts: 2}, s.options.Defaults)
		s.options.Limits.Hosts = 2
	}
	_, err := all[1].bookings.Book(t.Context(), owner, only("c", during(1, 150, 160)), nil)
	if got := refusal(t, err); got.Constraint != reservation.MaxHosts {
		t.Errorf("%v, want %s", got, reservation.MaxHosts)
	}
	agree(t, all)
}

// The limit does not apply to the other instants of the change.
func TestALoweredLimitIsHeldAgainstTheInstantsAtWhichAChangeAsksMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawHosts(t))
		for range rapid.IntRange(2, 8).Draw(t, "bookings") {
			if _, err := s.bookings.Book(t.Context(), owner, drawRequest(t, s.clock()), nil); err == nil && rapid.Bool().Draw(t, "time passes") {
				s.passTo(t, s.clock()+span.Instant(drawTicks(t, 0, 4, "passes")))
			}
		}
		for range 5 {
			r, ok := drawLive(t, s)
			if !ok {
				return
			}
			most, c := rapid.IntRange(1, 6).Draw(t, "most hosts"), drawChange(t, r)
			s.bookings.Configure(planning.Limits{Hosts: most}, s.options.Defaults)
			_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, c)
			refused, isRefusal := errors.AsType[*reservation.Refusal](err)
			byLimit := isRefusal && refused.Constraint == reservation.MaxHosts
			if err != nil && !byLimit || c.Quantity == nil && c.Start == nil && c.End == nil {
				continue // the change breaks another rule, or changes nothing
			}
			if asks := asksMoreThan(most, r, c, s.clock(), s.live(t)); asks != byLimit {
				t.Fatalf("the change %+v of %+v breaks the limit of %d: %v; the answer is %v", c, r, most, asks, err)
			}
		}
	})
}

// asksMoreThan reports whether, at some instant from now on, a change of r asks for more than
// r has and the project would then hold more than most.
func asksMoreThan(most int, r reservation.Reservation, c planning.Change, now span.Instant, live []reservation.Reservation) bool {
	quantity, hold := r.Quantity, r.Span
	if c.Quantity != nil {
		quantity = *c.Quantity
	}
	if c.Start != nil {
		hold.Start = *c.Start
	}
	if c.End != nil {
		hold.End = *c.End
	}
	hold.Start = max(hold.Start, now)
	return slices.ContainsFunc(turns(hold, live...), func(at span.Instant) bool {
		held := quantity
		for _, other := range live {
			if other.ID != r.ID && other.ProjectID == r.ProjectID {
				held += count(other, "", at)
			}
		}
		return count(r, "", at) < quantity && held > most
	})
}

// There is room from 200 on.
func TestAWindowWithRoomOnlyBeyondTheFarthestStartIsRefusedByThatLimit(t *testing.T) {
	s := newScene(t, named("a", "b"))
	s.book(t, only("a", during(1, 0, 200)))
	req := during(2, 0, 1000)
	req.Duration = 50
	for _, ahead := range []int64{150, 199} {
		s.options.Limits.StartAhead = ahead
		s.restart(t)
		_, err := s.bookings.Offer(t.Context(), owner, req)
		got := refusal(t, err)
		if got.Constraint != reservation.MaxStartAhead || got.BlockedBy != nil || got.EarliestStart != 0 || got.LargestQuantity != 1 || !strings.Contains(got.Message, at(200).String()) {
			t.Errorf("%d s ahead: %+v", ahead, got)
		}
		_, _, err = s.bookings.Availability(t.Context(), owner, req, 10)
		if diff := cmp.Diff(got, refusal(t, err)); diff != "" {
			t.Errorf("the availability (-offer +availability):\n%s", diff)
		}
	}
	req.End = at(240) // the whole window is within the limit
	_, err := s.bookings.Offer(t.Context(), owner, req)
	if got := refusal(t, err); got.Constraint != reservation.HostsFree || len(got.BlockedBy) == 0 {
		t.Errorf("until 240: %+v", got)
	}
}
