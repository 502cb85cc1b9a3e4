// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Under any limits, the service offers a start in and around the windows of the availability
// exactly if a window contains it; Free is the number of free hosts at the start of the window.
func TestWindowsAreTheStartsThatAreAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		s.options.Limits = drawLimits(t)
		s.restart(t)
		req := drawRequest(t, s.clock())
		req.Start = s.clock() + span.Instant(max(0, drawTicks(t, -5, 20, "from")))
		req.Duration = drawTicks(t, 1, 8, "for")
		req.End = req.Start.Add(req.Duration + drawTicks(t, 0, 30, "slack"))
		windows, _, err := s.bookings.Availability(t.Context(), owner, req, 1000)
		if err != nil {
			_, offered := s.bookings.Offer(t.Context(), owner, req)
			if diff := cmp.Diff(refusal(t, offered), refusal(t, err)); diff != "" {
				t.Fatalf("the refusals differ (-offer +availability):\n%s", diff)
			}
		}
		latest := req.End - span.Instant(req.Duration)
		for _, start := range s.interesting(t, span.New(req.Start, req.Duration)) {
			if start > latest {
				break
			}
			shown := slices.ContainsFunc(windows, func(w calendar.Window) bool { return w.Start <= start && start <= w.LatestStart })
			exact := reservation.Request{Terms: req.Terms, Start: start, Duration: req.Duration}
			if _, err := s.bookings.Offer(t.Context(), owner, exact); (err == nil) != shown {
				t.Fatalf("start %v available: %v; but the offer returns %v (%v)", start, shown, err, windows)
			}
		}
		for _, w := range windows {
			if _, free := s.figures(question{terms: req.Terms, hold: span.New(w.Start, req.Duration)}, s.live(t)); req.Kind == reservation.Hosts && w.Free != free {
				t.Fatalf("%d hosts are free at the start of %v, want %d", w.Free, w, free)
			}
		}
	})
}

// The limits allow no more than 100 s, no start more than 500 s ahead, and one host of the
// project at a time.
func TestTheAvailabilityKnowsTheLimitsThatABookingKnows(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(planning.Limits{Duration: 100, StartAhead: 500, Hosts: 1}))
	s.book(t, during(1, 200, 300)) // all that the project may hold then
	req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, End: at(10_000), Duration: 100}
	windows, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
	want := []calendar.Window{{Start: at(0), LatestStart: at(100), Free: 2}, {Start: at(300), LatestStart: at(500), Free: 2}}
	if diff := cmp.Diff(want, windows); err != nil || diff != "" {
		t.Errorf("%v; windows (-want +got):\n%s", err, diff)
	}
	long, late, many := req, req, req
	long.Duration, late.Start, many.Quantity = 101, at(501), 2
	for constraint, req := range map[reservation.Constraint]reservation.Request{
		reservation.MaxDuration: long, reservation.MaxStartAhead: late, reservation.MaxHosts: many,
	} {
		_, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
		if got := refusal(t, err); got.Constraint != constraint {
			t.Errorf("refused by %s: %s; want %s", got.Constraint, got.Message, constraint)
		}
	}
}

func TestAvailabilityShowsNoMoreWindowsThanAskedFor(t *testing.T) {
	s := newScene(t, named("a"))
	s.book(t, during(1, 100, 200))
	s.book(t, during(1, 300, 400))
	req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, End: at(1000), Duration: 50}
	for limit, want := range []int{0, 1, 2, 3, 3} {
		windows, matched, err := s.bookings.Availability(t.Context(), owner, req, limit)
		if err != nil || len(windows) != want || matched != 1 {
			t.Errorf("up to %d: %d windows on %d hosts, %v; want %d on 1", limit, len(windows), matched, err, want)
		}
	}
	if _, _, err := s.bookings.Availability(t.Context(), owner, reservation.Request{}, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("availability of nothing: %v, want invalid", err)
	}
}

// The limit cuts the beginning off a window. Its free hosts are those at the start that is left.
func TestFreeIsTheNumberOfHostsAtTheStartOfAnAvailableWindow(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d"), limited(planning.Limits{Hosts: 2}))
	s.book(t, during(2, 0, 100)) // all that the project may hold until 100
	req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: at(0), End: at(1000), Duration: 50}
	windows, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
	want := []calendar.Window{{Start: at(100), LatestStart: at(950), Free: 4}}
	if diff := cmp.Diff(want, windows); err != nil || diff != "" {
		t.Errorf("%v; windows (-want +got):\n%s", err, diff)
	}
}

// A window that begins now contains later starts, for which $free_ram_mb is the capacity.
func TestAFilterOnThePresentJudgesOnlyAStartNow(t *testing.T) {
	hosts := named("a")
	hosts[0].InstanceCount, hosts[0].Used.MemoryMB = 1, 16000
	s := newScene(t, hosts)
	for _, tc := range []struct {
		filter string
		from   int64
		want   []calendar.Window
	}{
		{`[">=", "$free_ram_mb", 8000]`, 0, []calendar.Window{{Start: at(1), LatestStart: at(3540), Free: 1}}},
		{`[">=", "$free_ram_mb", 8000]`, 9, []calendar.Window{{Start: at(9), LatestStart: at(3540), Free: 1}}},
		{`[">=", "$free_ram_mb", 300]`, 0, []calendar.Window{{Start: at(0), LatestStart: at(3540), Free: 1}}},
		{`["<", "$free_ram_mb", 8000]`, 0, []calendar.Window{{Start: at(0), LatestStart: at(0), Free: 1}}},
		{`["<", "$free_ram_mb", 8000]`, 9, nil},
	} {
		req := reservation.Request{Terms: reservation.Terms{Quantity: 1, HostProperties: tc.filter}, Start: at(tc.from), End: at(3600), Duration: 60}
		windows, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
		if diff := cmp.Diff(tc.want, windows); err != nil || diff != "" {
			t.Errorf("%s from %d on: %v; windows (-want +got):\n%s", tc.filter, tc.from, err, diff)
		}
		for _, policy := range calendar.Policies {
			req.Policy = policy
			if plan, err := s.bookings.Offer(t.Context(), owner, req); (err == nil) != (tc.want != nil) || err == nil && plan.Matched != 1 {
				t.Errorf("%s from %d on, %s: %+v, %v", tc.filter, tc.from, policy, plan, err)
			}
		}
	}
}

// Why there is no window is found out with a search by the policy, and the default one may have no tariff.
func TestAvailabilityWithoutATariffIsRefusedByItsLimit(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(planning.Limits{Hosts: 1}), func(o *booking.Options) { o.Defaults.Policy = calendar.PolicyCheapest })
	s.book(t, only("a", during(1, 0, 20)))
	for _, req := range []reservation.Request{only("a", during(1, 20, 200)), only("b", during(1, 100, 200))} {
		if _, err := s.bookings.Book(t.Context(), booking.Caller{ProjectID: req.HostProperties}, req, nil); err != nil {
			t.Fatal(err)
		}
	}
	req := during(1, 0, 150)
	req.Duration = 90
	_, _, err := s.bookings.Availability(t.Context(), owner, req, 10)
	if r := refusal(t, err); r.Constraint != reservation.MaxHosts {
		t.Error(r)
	}
}
