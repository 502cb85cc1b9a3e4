// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func TestOnlyLiveReservationsThatDoNotEndAreHealed(t *testing.T) {
	cloud := &servers{}
	s := newScene(t, named("a", "b"), func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
	canceled := s.book(t, during(1, 100, 200)).ID
	if _, err := s.bookings.Cancel(t.Context(), owner, canceled); err != nil {
		t.Fatal(err)
	}
	ending := s.book(t, during(1, 100, 200)).ID
	s.carryOut(t, 100)
	s.bookings.Wait()
	s.heal(t, ending, failing("a", "b"), true) // it is degraded
	over := cloud.block(ending)
	s.now.Store(int64(at(200)))
	s.heal(t, ending, failing(), false) // its end is late
	s.carryOut(t, 200)
	wantStatus(t, s, ending, reservation.Ending)
	s.now.Store(int64(at(199))) // by the clock of another replica
	for _, id := range []string{canceled, ending, "nobody"} {
		s.heal(t, id, failing("a"), false)
	}
	over <- nil
	s.bookings.Wait()
	s.heal(t, ending, failing("a"), false)
}

// Work on the cloud neither undoes what was stored since it began, nor restores what was
// released.
func TestAStartUnderWayEndsOnTheHostsItWasGivenMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		result error
		cancel bool
		want   reservation.Status
	}{
		"well":     {nil, false, reservation.Active},
		"badly":    {errors.New("the host is down"), false, reservation.Starting},
		"canceled": {nil, true, reservation.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			cloud := &servers{}
			s := newScene(t, named("a", "b"), func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
			id := s.book(t, during(1, 100, 200)).ID
			over := cloud.block(id)
			s.carryOut(t, 100)
			cloud.wantBegun(t, 1)
			s.heal(t, id, failing("a"), true)
			if tc.cancel {
				if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
					t.Fatal(err)
				}
			}
			over <- tc.result
			s.bookings.Wait()
			r := s.stored(t)[0] // includes canceled reservations
			if held := claimed(r); r.Status != tc.want || !tc.cancel && !slices.Equal(held, []string{"b"}) {
				t.Errorf("the reservation is %s and has %v, want %s", r.Status, held, tc.want)
			}
			s.check(t)
		})
	}
}

func TestTwoReplicasHealOnce(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		id := a.book(t, during(1, 100, 200)).ID
		b.follow(t)
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() { b.heal(t, id, failing("a"), false) }) // finds it done
		synctest.Wait()
		r := a.heal(t, id, failing("a"), true)
		close(goOn)
		running.Wait()
		if got := a.get(t, id); got.Version != r.Version || len(told(got)) != 1 {
			t.Errorf("version %d after %d, log %q", got.Version, r.Version, told(got))
		}
		agree(t, []*scene{a, b})
	})
}

// Two replicas each heal a reservation that needs the same host.
func TestAHostThatIsWantedForTwoReservationsHealsOne(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		one, two := a.book(t, during(1, 100, 200)).ID, a.book(t, during(1, 100, 200)).ID
		b.follow(t)
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() { b.heal(t, one, failing("a", "b"), true) })
		synctest.Wait()
		a.heal(t, two, failing("a", "b"), true)
		close(goOn)
		running.Wait()
		if first, second := a.get(t, one), a.get(t, two); first.Degraded == "" || second.Degraded != "" {
			t.Errorf("degraded: %q and %q; want only the first", first.Degraded, second.Degraded)
		}
		agree(t, []*scene{a, b})
	})
}

// Both hosts are held until the service has read the records.
func TestHealingThatMayNotHaveBeenStoredHoldsBoth(t *testing.T) {
	gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
		id := b.book(t, during(1, 100, 200)).ID
		g.set(func(g *gates) {
			g.afterCommit = func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
		})
		if _, changed, err := b.bookings.Heal(t.Context(), id, failing("a")); !fault.Is(err, fault.Unavailable) || changed {
			t.Fatalf("changed %v, %v", changed, err)
		}
		g.set(func(g *gates) { g.afterCommit = nil })
		_, err := b.bookings.Offer(t.Context(), owner, during(1, 100, 200))
		refusal(t, err)
		b.follow(t)
		b.book(t, only("a", during(1, 100, 200)))
		agree(t, []*scene{a, b})
	})
}
