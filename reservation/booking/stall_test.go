// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// slowDecision begins a decision that lasts until the caller calls end, which returns the
// decision's error.
func slowDecision(t *testing.T, s *scene, id string) (end func() error) {
	t.Helper()
	deciding, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	first := true
	go func() {
		_, _, err := s.bookings.Heal(context.Background(), id, func(string) (string, bool) {
			if first {
				first = false
				close(deciding)
				<-goOn
			}
			return "", false
		})
		done <- err
	}()
	<-deciding
	return func() error {
		close(goOn)
		return <-done
	}
}

// While a decision is made, the scheduler, starts and ends, and the inventory go on. If one of
// them waits for the decision, this test does not end.
func TestNobodyWaitsForADecision(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	id := s.book(t, during(1, 100, 200)).ID
	end := slowDecision(t, s, id)
	s.bookings.Promised(at(0))
	s.bookings.Fillable(at(0), 60)
	s.bookings.Live(span.Span{Start: at(0), End: at(1000)})
	s.bookings.Reservation(id)
	s.bookings.Observe(s.bookings.Snapshot())
	s.bookings.Prune()
	if _, failed := s.bookings.CarryOut(t.Context()); len(failed) > 0 {
		t.Error(failed)
	}
	if err := s.bookings.Follow(t.Context()); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestWhoeverWaitsForADecisionGivesUpWithItsContext(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	id := s.book(t, during(1, 100, 200)).ID
	end := slowDecision(t, s, id)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, ask := range map[string]func() error{
		"offer":        func() error { _, err := s.bookings.Offer(gone, owner, during(1, 100, 200)); return err },
		"availability": func() error { _, _, err := s.bookings.Availability(gone, owner, during(1, 100, 200), 10); return err },
		"booking":      func() error { _, err := s.bookings.Book(gone, owner, during(1, 100, 200), nil); return err },
		"change":       func() error { _, err := s.bookings.Cancel(gone, owner, id); return err },
	} {
		if err := ask(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the error of its context", name, err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// If another project waits for a project's decision, this test does not end.
func TestAProjectDoesNotWaitForTheDecisionOfAnother(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	end := slowDecision(t, s, s.book(t, during(1, 100, 200)).ID)
	other := owner
	other.ProjectID = "other"
	if _, err := s.bookings.Offer(t.Context(), other, during(1, 100, 200)); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A decision that another one has overtaken is made again on the new state.
func TestADecisionThatDoesNotHoldAnyMoreIsMadeAgain(t *testing.T) {
	both := replicas(t, 2, named("a", "b"))
	s, other := both[0], both[1]
	r := s.book(t, during(1, 100, 200))
	other.follow(t)
	calls := 0
	healed, changed, err := s.bookings.Heal(t.Context(), r.ID, func(host string) (string, bool) {
		if calls++; calls == 1 { // meanwhile the other replica takes the only possible host
			if _, err := other.bookings.Book(t.Context(), owner, during(1, 100, 200), nil); err != nil {
				t.Error(err)
			}
			if err := s.bookings.Follow(t.Context()); err != nil {
				t.Error(err)
			}
		}
		return "its nova-compute is down", host == r.Claims[0].Host
	})
	if err != nil || !changed || healed.Degraded == "" || healed.Claims[0].Host != r.Claims[0].Host {
		t.Errorf("healed to %v, degraded %q, changed %v, %v; want it degraded on its own host", healed.Claims, healed.Degraded, changed, err)
	}
	s.check(t)
}

func TestADecisionThatPanicsDoesNotKeepOthersFromDeciding(t *testing.T) {
	var broken atomic.Bool
	s := newScene(t, named("a"), func(o *booking.Options) {
		now := o.Now
		o.Deciding, o.Now = 1, func() span.Instant {
			if broken.Load() {
				panic("the clock is broken")
			}
			return now()
		}
	})
	r := s.book(t, during(1, 100, 200))
	broken.Store(true)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the change reads no clock")
			}
		}()
		_, _ = s.bookings.Change(t.Context(), owner, r.ID, ends(300))
	}()
	broken.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.bookings.Change(ctx, owner, r.ID, ends(300)); err != nil {
		t.Errorf("the next change: %v", err)
	}
}
