// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// A004_7 is check A004-7 of paper 004.
func TestA004_7(t *testing.T) {
	s := newScene(t, named("A", "B", "C"))
	s.book(t, only("B", during(1, 100, 150)))
	req := during(2, 100, 200)
	req.Duration = 60
	first := s.book(t, req)
	if diff := cmp.Diff([]string{"A", "C"}, claimed(first)); diff != "" || first.Span.Start != at(100) {
		t.Errorf("the first starts at %v on (-want +got):\n%s", first.Span.Start, diff)
	}
	_, err := s.bookings.Book(t.Context(), owner, req, nil)
	want := &reservation.Refusal{
		Constraint: reservation.HostsFree, Matched: 3, Free: 0, EarliestStart: at(160), LargestQuantity: 0, Wanted: span.Span{Start: at(100), End: at(160)},
		BlockedBy: []reservation.Block{
			{Host: "A", Span: span.Span{Start: at(100), End: at(160)}},
			{Host: "B", Span: span.Span{Start: at(100), End: at(150)}},
			{Host: "C", Span: span.Span{Start: at(100), End: at(160)}},
		},
	}
	got := refusal(t, err)
	want.Message = got.Message
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the second, with end 200 (-want +got):\n%s", diff)
	}
	req.End = at(230)
	if r := s.book(t, req); r.Span != span.New(at(160), 60) {
		t.Errorf("the second, with end 230, has %v, want 60 s from %v", r.Span, at(160))
	}
}

// These are checks A003-3, A003-5 and A003-8: one scene, seven policies.
func TestFigure1OfPaper003(t *testing.T) {
	for policy, want := range map[calendar.Policy]struct {
		start int64
		hosts []string
	}{
		calendar.PolicyFirstFit:           {20, []string{"p04", "p05", "p06", "p07"}},
		calendar.PolicyPEBestFit:          {85, []string{"p00", "p01", "p08", "p09"}},
		calendar.PolicyPEWorstFit:         {30, []string{"p00", "p01", "p02", "p03"}},
		calendar.PolicyDurationBestFit:    {30, []string{"p00", "p01", "p02", "p03"}},
		calendar.PolicyDurationWorstFit:   {85, []string{"p00", "p01", "p08", "p09"}},
		calendar.PolicyPEDurationBestFit:  {85, []string{"p00", "p01", "p08", "p09"}},
		calendar.PolicyPEDurationWorstFit: {30, []string{"p00", "p01", "p02", "p03"}},
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newScene(t, named("p00", "p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09", "p10", "p11"))
			for host := range 8 {
				name := fmt.Sprintf("p%02d", host)
				if host < 4 {
					s.book(t, only(name, during(1, 0, 30)))
				} else if host < 7 {
					s.book(t, only(name, during(1, 0, 10)))
				}
				if host >= 2 {
					s.book(t, only(name, during(1, 100, 130)))
				}
			}
			req := during(9, 20, 110)
			req.Duration, req.Policy = 25, policy
			if plan, err := s.bookings.Offer(t.Context(), owner, req); err != nil || plan.Span.Start != at(30) {
				t.Errorf("nine start at %v, %v; want %v", plan.Span.Start, err, at(30))
			}
			req.Quantity = 13
			_, err := s.bookings.Offer(t.Context(), owner, req)
			if got := refusal(t, err).LargestQuantity; got != 12 {
				t.Errorf("thirteen: largest quantity %d, want 12", got)
			}
			req.Quantity, req.End = 4, at(45)
			if plan, err := s.bookings.Offer(t.Context(), owner, req); err != nil || plan.Span.Start != at(20) {
				t.Errorf("with an immediate deadline: %v, %v; want %v", plan.Span.Start, err, at(20))
			}
			req.End = at(110)
			r := s.book(t, req)
			if diff := cmp.Diff(want.hosts, claimed(r)); diff != "" || r.Span != span.New(at(want.start), 25) {
				t.Errorf("span %v, want 25 s from %v; hosts (-want +got):\n%s", r.Span, at(want.start), diff)
			}
		})
	}
}

func TestWhatTheTimesOfARequestMean(t *testing.T) {
	for name, tc := range map[string]struct {
		start, end span.Instant
		duration   int64
		want       span.Span
	}{
		"start alone with duration":     {start: at(300), duration: 60, want: span.Span{Start: at(300), End: at(360)}},
		"both without duration":         {start: at(300), end: at(500), want: span.Span{Start: at(300), End: at(500)}},
		"both with duration":            {start: at(50), end: at(500), duration: 60, want: span.Span{Start: at(200), End: at(260)}},
		"both with exactly that long":   {start: at(300), end: at(360), duration: 60, want: span.Span{Start: at(300), End: at(360)}},
		"end with duration":             {end: at(500), duration: 60, want: span.Span{Start: at(0), End: at(60)}},
		"end with duration, later room": {end: at(500), duration: 120, want: span.Span{Start: at(200), End: at(320)}},
		"end alone":                     {end: at(90), want: span.Span{Start: at(0), End: at(90)}},
		"neither":                       {duration: 60, want: span.Span{Start: at(0), End: at(60)}},
		"start now":                     {start: at(0), duration: 60, want: span.Span{Start: at(0), End: at(60)}},
		"one second":                    {duration: 1, want: span.Span{Start: at(0), End: at(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a"))
			s.book(t, during(1, 100, 200))
			req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: tc.start, End: tc.end, Duration: tc.duration}
			if r := s.book(t, req); r.Span != tc.want || r.DelayedByBoot {
				t.Errorf("span %v (delayed by boot: %v), want %v", r.Span, r.DelayedByBoot, tc.want)
			}
		})
	}
}

func TestAnImmediateReservationWaitsForNothingButBoots(t *testing.T) {
	hosts := named("awake", "fast", "slow", "failed")
	hosts[1].Power, hosts[1].BootSeconds = inventory.PowerSleeping, 30
	hosts[2].Power, hosts[2].BootSeconds = inventory.PowerWaking, 90
	hosts[3].Power = inventory.PowerFailed
	for name, tc := range map[string]struct {
		quantity    int
		duration    int64
		only        string                // the requested host; empty for any
		busy        []reservation.Request // booked before
		want        span.Instant
		wantDelayed bool
		wantRefused bool
	}{
		"awake hosts start now":            {quantity: 1, duration: 50, want: at(0)},
		"one must boot":                    {quantity: 2, duration: 50, want: at(30), wantDelayed: true},
		"the slowest counts":               {quantity: 3, duration: 50, want: at(90), wantDelayed: true},
		"a failed one never comes":         {quantity: 4, duration: 50, wantRefused: true},
		"a claim in the way is not a boot": {quantity: 1, duration: 100, busy: []reservation.Request{during(1, 0, 10), only("fast", during(1, 40, 60)), only("slow", during(1, 90, 99))}, wantRefused: true},
		"a boot, not the end of a claim":   {quantity: 2, duration: 50, busy: []reservation.Request{only("slow", during(1, 200, 300)), only("fast", during(1, 70, 80))}, want: at(90), wantDelayed: true},
		"others' boots are not waited for": {quantity: 1, duration: 50, only: "fast", busy: []reservation.Request{only("fast", during(1, 60, 80))}, wantRefused: true},
		"nothing is free by the last boot": {quantity: 2, duration: 50, busy: []reservation.Request{only("fast", during(1, 60, 100)), only("slow", during(1, 110, 120))}, wantRefused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, hosts)
			for _, req := range tc.busy {
				s.book(t, req)
			}
			req := reservation.Request{Terms: reservation.Terms{Quantity: tc.quantity}, Duration: tc.duration}
			if tc.only != "" {
				req = only(tc.only, req)
			}
			r, err := s.bookings.Book(t.Context(), owner, req, nil)
			if tc.wantRefused {
				refusal(t, err)
				return
			}
			if err != nil || r.Span.Start != tc.want || r.DelayedByBoot != tc.wantDelayed {
				t.Errorf("starts at %v, delayed by boot: %v, %v; want %v and %v", r.Span.Start, r.DelayedByBoot, err, tc.want, tc.wantDelayed)
			}
		})
	}
}

// Only a request without times is delayed by boots.
func TestAStartThatWasNamedWaitsForNoBoot(t *testing.T) {
	hosts := named("a")
	hosts[0].Power, hosts[0].BootSeconds = inventory.PowerSleeping, 30
	s := newScene(t, hosts)
	_, err := s.bookings.Offer(t.Context(), owner, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: at(0), Duration: 60})
	if r := refusal(t, err); r.EarliestStart != at(30) || r.LargestQuantity != 0 {
		t.Errorf("earliest start %v and largest quantity %d, want %v and 0", r.EarliestStart, r.LargestQuantity, at(30))
	}
	plan, err := s.bookings.Offer(t.Context(), owner, reservation.Request{Terms: reservation.Terms{Quantity: 1}, End: at(500), Duration: 60})
	if err != nil || plan.Span.Start != at(30) || plan.DelayedByBoot {
		t.Errorf("in a window: %v, delayed by boot: %v, %v; want %v and not delayed", plan.Span, plan.DelayedByBoot, err, at(30))
	}
}

func TestARefusalNamesItsConstraint(t *testing.T) {
	limits := planning.Limits{Duration: 1000, StartAhead: 500, Hosts: 4, HostSeconds: 1500}
	for name, tc := range map[string]struct {
		req         reservation.Request
		want        reservation.Constraint
		wantMatched int
		wantLargest int
	}{
		"more than the pool has":              {during(4, 100, 200), reservation.HostsInPool, 3, 2},
		"more than the cloud has":             {reservation.Request{Terms: reservation.Terms{Quantity: 4}, Start: at(300), End: at(400)}, reservation.HostsInPool, 3, 3},
		"more than match":                     {only("a", during(2, 100, 200)), reservation.HostsMatching, 1, 0},
		"a property nobody has":               {reservation.Request{Terms: reservation.Terms{Quantity: 1, HostProperties: `["=", "$gpu", "a100"]`}, Duration: 10}, reservation.HostsMatching, 0, 0},
		"more than are free":                  {during(3, 100, 200), reservation.HostsFree, 3, 2},
		"longer than allowed":                 {during(1, 100, 1101), reservation.MaxDuration, 3, 0},
		"farther ahead than allowed":          {during(1, 501, 600), reservation.MaxStartAhead, 3, 0},
		"more hosts than the project may":     {during(5, 100, 200), reservation.MaxHosts, 3, 2},
		"more host time than the project may": {during(2, 200, 951), reservation.MaxHostHours, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"), limited(limits))
			if _, err := s.bookings.Book(t.Context(), projects[1], only("a", during(1, 100, 200)), nil); err != nil {
				t.Fatal(err)
			}
			_, err := s.bookings.Book(t.Context(), owner, tc.req, nil)
			got := refusal(t, err)
			if got.Constraint != tc.want || got.Matched != tc.wantMatched || got.LargestQuantity != tc.wantLargest || got.Message == "" {
				t.Errorf("%v with %d matching and at most %d, want %s, %d and %d",
					got, got.Matched, got.LargestQuantity, tc.want, tc.wantMatched, tc.wantLargest)
			}
		})
	}
}

func TestARefusalListsNoMoreThanMaxBlocks(t *testing.T) {
	s := newScene(t, named("a"))
	for i := range int64(reservation.MaxBlocks + 1) {
		s.book(t, during(1, 10*i, 10*i+9))
	}
	_, err := s.bookings.Offer(t.Context(), owner, during(1, 0, 2000))
	if got := refusal(t, err).BlockedBy; len(got) != reservation.MaxBlocks || got[0].Span.Start != at(0) {
		t.Errorf("%d blocks, the first %v; want the first %d", len(got), got[0], reservation.MaxBlocks)
	}
}
