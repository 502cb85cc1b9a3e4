package booking_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func TestLimitsCountAProjectsLiveReservations(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(booking.Limits{Hosts: 2, HostSeconds: 250}))
	first := s.book(t, during(2, 100, 200)) // 200 host-seconds
	_, err := s.desk.Book(t.Context(), owner, during(1, 300, 310), nil)
	if got := refusal(t, err).Constraint; got != reservation.MaxHosts {
		t.Errorf("a third host: refused by %s, want %s", got, reservation.MaxHosts)
	}
	if _, err := s.desk.Book(t.Context(), projects[1], during(1, 300, 310), nil); err != nil {
		t.Errorf("another project: %v", err)
	}
	first = s.change(t, first.ID, quantity(1)) // 100
	second := s.book(t, during(1, 300, 450))   // 250
	s.restart(t)
	_, err = s.desk.Change(t.Context(), owner, first.ID, ends(201))
	if got := refusal(t, err); got.Constraint != reservation.MaxHostHours || got.LargestQuantity != 0 {
		t.Errorf("one more second, after a restart: %v, at most %d; want %s and 0", got, got.LargestQuantity, reservation.MaxHostHours)
	}
	if _, err := s.desk.Cancel(t.Context(), owner, second.ID); err != nil {
		t.Fatal(err)
	}
	s.change(t, first.ID, ends(350))
	s.passTo(t, at(400)) // ended
	s.book(t, during(2, 400, 525))
	s.check(t)
}

func TestALimitRefusesAChangeOnlyForWhatItAsksMoreOf(t *testing.T) {
	lowered := booking.Limits{Duration: 50, StartAhead: 10, Hosts: 1, HostSeconds: 60}
	for name, tc := range map[string]struct {
		change booking.Change
		want   reservation.Constraint // "" is accepted
	}{
		"rename":                    {change: renamed("night run")},
		"shrink":                    {change: quantity(1)},
		"shorten":                   {change: ends(180)},
		"later start, the same end": {change: starts(120), want: reservation.MaxStartAhead},
		"an earlier time":           {change: moves(50, 150)},
		"a later time":              {change: moves(110, 210), want: reservation.MaxStartAhead},
		"extend":                    {change: ends(201), want: reservation.MaxDuration},
		"grow":                      {change: quantity(3), want: reservation.MaxHosts},
		"grow and shorten":          {change: booking.Change{Quantity: new(3), End: new(at(120))}, want: reservation.MaxHosts},
		"extend and shrink":         {change: booking.Change{Quantity: new(1), End: new(at(201))}, want: reservation.MaxDuration},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			r := s.book(t, during(2, 100, 200))
			s.options.Limits = lowered
			s.restart(t)
			_, err := s.desk.Change(t.Context(), owner, r.ID, tc.change)
			if tc.want == "" && err == nil {
				return
			}
			if got := refusal(t, err); got.Constraint != tc.want || got.EarliestStart != 0 {
				t.Errorf("%v with earliest start %v, want %q and none", got, got.EarliestStart, tc.want)
			}
		})
	}
}

func TestHostTimeOfAChange(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(booking.Limits{HostSeconds: 300}))
	r := s.book(t, during(2, 100, 200)) // 200 host-seconds
	_, err := s.desk.OfferChange(t.Context(), owner, r.ID, ends(251))
	if got := refusal(t, err); got.Constraint != reservation.MaxHostHours || got.LargestQuantity != 1 {
		t.Errorf("2 for 151 s: %v, at most %d; want %s and 1", got, got.LargestQuantity, reservation.MaxHostHours)
	}
	s.change(t, r.ID, ends(250))
	s.change(t, r.ID, booking.Change{Quantity: new(3), End: new(at(200))})
	s.check(t)
	s.options.Limits = booking.Limits{HostSeconds: 10}
	s.restart(t)
	s.change(t, r.ID, booking.Change{Quantity: new(2), End: new(at(250))}) // longer, but no more host time
	_, err = s.desk.OfferChange(t.Context(), owner, r.ID, ends(251))
	if got := refusal(t, err).Constraint; got != reservation.MaxHostHours {
		t.Errorf("more host time: refused by %s, want %s", got, reservation.MaxHostHours)
	}
}

// TestWhatGrewLateMayShrinkAtTheLimit: it counts less than its hosts over
// its whole time, and others have taken the rest.
func TestWhatGrewLateMayShrinkAtTheLimit(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), limited(booking.Limits{HostSeconds: 300}))
	r := s.book(t, during(1, 100, 200))
	s.passTo(t, at(190))
	s.change(t, r.ID, quantity(3)) // 100 + 2 × 10 host-seconds
	s.book(t, during(1, 200, 380)) // and 180
	s.change(t, r.ID, quantity(2))
	s.check(t)
}

func TestAnExtensionIsAcceptedOnlyNearTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		now    int64
		change booking.Change
		want   reservation.Constraint // "" is accepted
	}{
		"too early":                {now: 169, change: ends(300), want: reservation.ExtensionTooEarly},
		"near the end":             {now: 170, change: ends(300)},
		"before the start":         {now: 0, change: ends(300), want: reservation.ExtensionTooEarly},
		"by an earlier start":      {now: 0, change: starts(50), want: reservation.ExtensionTooEarly},
		"another time is none":     {now: 0, change: moves(400, 500)},
		"nor is an end before":     {now: 120, change: ends(180)},
		"nor are more hosts":       {now: 120, change: quantity(3)},
		"nor a new name":           {now: 120, change: renamed("x")},
		"with fewer hosts it is":   {now: 120, change: booking.Change{Quantity: new(1), End: new(at(300))}, want: reservation.ExtensionTooEarly},
		"an end that is not later": {now: 120, change: ends(200)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"), limited(booking.Limits{ExtensionWindow: 30}))
			r := s.book(t, during(2, 100, 200))
			s.passTo(t, at(tc.now))
			_, err := s.desk.Change(t.Context(), owner, r.ID, tc.change)
			if tc.want == "" && err == nil {
				return
			}
			if got := refusal(t, err); got.Constraint != tc.want || got.LargestQuantity != 0 {
				t.Errorf("%v with at most %d, want %q and 0", got, got.LargestQuantity, tc.want)
			}
		})
	}
}

// TestAStartIsLookedForUpToTheHorizon: neither booking nor a refusal goes beyond.
func TestAStartIsLookedForUpToTheHorizon(t *testing.T) {
	s := newScene(t, named("a"), limited(booking.Limits{StartAhead: 100}))
	s.book(t, during(1, 50, 100))
	req := during(1, 20, 1000)
	req.Duration = 60
	plan, err := s.desk.Offer(t.Context(), owner, req)
	if err != nil || plan.Span != span.New(at(100), 60) {
		t.Errorf("just at the horizon: %v, %v; want 60 s from %v", plan.Span, err, at(100))
	}
	asleep := named("b")
	asleep[0].Power, asleep[0].BootSeconds = inventory.PowerSleeping, 101
	s.hosts = append(s.hosts, asleep...)
	s.observe(t)
	s.book(t, during(1, 100, 101))
	_, err = s.desk.Offer(t.Context(), owner, only("b", reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 60}))
	if got := refusal(t, err).EarliestStart; got != 0 {
		t.Errorf("a host that boots beyond the horizon: earliest %v, want none", got)
	}
	_, err = s.desk.Offer(t.Context(), owner, req)
	if got := refusal(t, err); got.Constraint != reservation.HostsFree || got.EarliestStart != 0 || got.LargestQuantity != 0 {
		t.Errorf("beyond the horizon: %v, earliest %v, at most %d; want %s and neither", got, got.EarliestStart, got.LargestQuantity, reservation.HostsFree)
	}
}
