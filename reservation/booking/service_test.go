// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The service goes through a random life. After each step, the oracle checks all promises.
//
//make:test-drawn
func TestEveryPromiseIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawHosts(t), limited(drawLimits(t)))
		t.Repeat(map[string]func(*rapid.T){
			"":               func(t *rapid.T) { s.check(t) },
			"book":           s.stepBook,
			"book another":   s.stepBook,
			"change":         s.stepChange,
			"change another": s.stepChange,
			"change a third": s.stepChange,
			"cancel":         s.stepCancel,
			"time, too late": func(t *rapid.T) { s.now.Add(drawTicks(t, 0, 3, "passes") + 3) },
			"time":           func(t *rapid.T) { s.passTo(t, s.clock()+3+span.Instant(drawTicks(t, 0, 3, "passes"))) },
			"prune":          func(*rapid.T) { s.bookings.Prune() },
			"observe":        s.stepObserve,
			"restart":        s.stepRestart,
		})
	})
}

func (s *scene) stepBook(t *rapid.T) {
	req := drawRequest(t, s.clock())
	by := rapid.SampledFrom(projects).Draw(t, "by")
	unchanged := s.watch(t)
	r, err := s.bookings.Book(t.Context(), by, req, nil)
	if err != nil {
		expectKinds(t, err, fault.Invalid)
		unchanged(t)
		return
	}
	s.checkGain(t, reservation.Reservation{}, r)
	s.checkAnswered(t, req, r)
}

// checkAnswered checks a booking against its request.
func (s *scene) checkAnswered(t *rapid.T, req reservation.Request, r reservation.Reservation) {
	t.Helper()
	start, length := max(req.Start, s.clock()), req.Duration
	if req.Duration == 0 {
		length = int64(req.End - start)
	}
	immediate := req.Start == 0 && req.End == 0
	switch {
	case r.Span.Seconds() != length:
		t.Fatalf("%s lasts %d s, want %d", r.ID, r.Span.Seconds(), length)
	case r.Span.Start < start || req.End != 0 && r.Span.End > req.End:
		t.Fatalf("%s has %v, outside its window from %v to %v", r.ID, r.Span, start, req.End)
	case r.DelayedByBoot != (immediate && r.Span.Start > start):
		t.Fatalf("%s starts at %v instead of %v, delayed by boot: %v", r.ID, r.Span.Start, start, r.DelayedByBoot)
	case req.Start != 0 && req.End == 0 && r.Span.Start != req.Start:
		t.Fatalf("%s starts at %v, but the request names %v", r.ID, r.Span.Start, req.Start)
	}
	for _, name := range r.HostNames() {
		if !meaningOf(req.HostProperties)(s.host(name), r.Span.Start > s.clock()) {
			t.Fatalf("%s has %s, which does not match %s", r.ID, name, req.HostProperties)
		}
	}
}

func (s *scene) stepChange(t *rapid.T) {
	before, ok := drawLive(t, s)
	if !ok {
		return
	}
	c := drawChange(t, before)
	unchanged := s.watch(t)
	r, err := s.bookings.Change(t.Context(), booking.Caller{ProjectID: before.ProjectID}, before.ID, c)
	if err != nil {
		expectKinds(t, err, fault.Invalid, fault.Conflict)
		unchanged(t)
		return
	}
	s.checkGain(t, before, r)
	s.checkTerms(t, before, r, c)
	if r.Version == before.Version { // a client sends back what it has read, even of one whose end is late
		if diff := cmp.Diff(before, r); diff != "" {
			t.Fatalf("nothing was stored, but the answer differs (-before +after):\n%s", diff)
		}
		return
	}
	if before.Status != reservation.Active {
		return
	}
	if r.Span.Start != before.Span.Start {
		t.Fatalf("%s was active, but its start moved from %v to %v", r.ID, before.Span.Start, r.Span.Start)
	}
	now, stayed := s.clock(), 0
	for _, name := range before.HostNames() {
		stayed += min(count(before, name, now), count(r, name, now))
	}
	if stayed < min(before.Quantity, r.Quantity) {
		t.Fatalf("%s was active on %v, but moved to %v", r.ID, claimed(before), claimed(r))
	}
}

// checkTerms checks that a changed reservation has what the change asks for, and that its hosts pass a new filter.
func (s *scene) checkTerms(t *rapid.T, before, r reservation.Reservation, c planning.Change) {
	t.Helper()
	want := before.Terms
	for _, one := range []struct {
		asked bool
		set   func()
	}{
		{c.Name != nil, func() { want.Name = *c.Name }},
		{c.Quantity != nil, func() { want.Quantity = *c.Quantity }},
		{c.HostProperties != nil, func() { want.HostProperties = *c.HostProperties }},
		{c.OnEnd != nil, func() { want.OnEnd = *c.OnEnd }},
		{c.BeforeEnd != nil, func() { want.BeforeEnd = *c.BeforeEnd }},
		{c.Resources != nil, func() { want.Resources = *c.Resources }},
		{c.Affinity != nil, func() { want.Affinity = *c.Affinity }},
	} {
		if one.asked {
			one.set()
		}
	}
	if diff := cmp.Diff(want, r.Terms); diff != "" {
		t.Fatalf("%+v changes %s (-want +got):\n%s", c, r.ID, diff)
	}
	for _, claim := range r.Claims {
		filter := meaningOf(r.HostProperties)
		if c.HostProperties != nil && claim.Span.End > s.clock() && !filter(s.host(claim.Host), max(r.Span.Start, s.clock()) > s.clock()) {
			t.Fatalf("%s has %s, which does not match its new filter, %s", r.ID, claim.Host, r.HostProperties)
		}
	}
}

func (s *scene) stepCancel(t *rapid.T) {
	before, ok := drawLive(t, s)
	if !ok {
		return
	}
	r, err := s.bookings.Cancel(t.Context(), booking.Caller{ProjectID: before.ProjectID}, before.ID)
	if err != nil {
		t.Fatalf("cancel %s: %v", before.ID, err)
	}
	for _, c := range r.Claims {
		if c.Span.End > s.clock() {
			t.Fatalf("%s is canceled, but holds %+v", r.ID, c)
		}
	}
}

// stepObserve lets the inventory report other power states and guests, and lets hosts enter
// and leave the pool.
func (s *scene) stepObserve(t *rapid.T) {
	h := &s.hosts[rapid.IntRange(0, len(s.hosts)-1).Draw(t, "host")]
	drawState(t, h)
	h.Reservable = rapid.IntRange(0, 3).Draw(t, "reservable") > 0
	s.observe(t)
}

// stepRestart checks that the records restore everything that is in memory.
func (s *scene) stepRestart(t *rapid.T) {
	before := s.answers(t)
	s.restart(t)
	if diff := cmp.Diff(before, s.answers(t)); diff != "" {
		t.Fatalf("answers (-before +after the restart):\n%s", diff)
	}
}

// watch remembers the records and the service's answers. The function that it returns fails
// if either has changed.
func (s *scene) watch(t *rapid.T) func(*rapid.T) {
	records, answers := s.stored(t), s.answers(t)
	return func(t *rapid.T) {
		t.Helper()
		if diff := cmp.Diff(records, s.stored(t)); diff != "" {
			t.Fatalf("records (-before +after the refusal):\n%s", diff)
		}
		if diff := cmp.Diff(answers, s.answers(t)); diff != "" {
			t.Fatalf("answers (-before +after the refusal):\n%s", diff)
		}
	}
}

// expectKinds fails unless err is a refusal or one of these faults.
func expectKinds(t tester, err error, kinds ...fault.Kind) {
	t.Helper()
	if _, ok := errors.AsType[*reservation.Refusal](err); ok {
		return
	}
	for _, kind := range kinds {
		if fault.Is(err, kind) {
			return
		}
	}
	t.Errorf("got %v, want a refusal or one of %v", err, kinds)
}
