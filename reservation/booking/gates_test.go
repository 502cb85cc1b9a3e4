// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// gates are records whose calls a test holds up or fails, before or after their effect. A nil
// gate is open.
type gates struct {
	booking.Records

	mu                        sync.Mutex
	beforeCommit, afterCommit func(c booking.Commit) error
	beforeRecall, afterRecall func(ctx context.Context) error
}

func (g *gates) set(change func(g *gates)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

func (g *gates) Commit(ctx context.Context, c booking.Commit) error {
	g.mu.Lock()
	before, after := g.beforeCommit, g.afterCommit
	g.mu.Unlock()
	if before != nil {
		if err := before(c); err != nil {
			return err
		}
	}
	err := g.Records.Commit(ctx, c)
	if err == nil && after != nil {
		err = after(c)
	}
	return err
}

func (g *gates) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	g.mu.Lock()
	before, after := g.beforeRecall, g.afterRecall
	g.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return booking.Recalled{}, err
		}
	}
	got, err := g.Records.Recall(ctx, q)
	if err == nil && after != nil {
		err = after(ctx)
	}
	return got, err
}

// gated runs test in a synctest bubble with two replicas. The records of the second have gates.
func gated(t *testing.T, hosts []string, test func(t *testing.T, a, b *scene, g *gates), adjust ...func(*booking.Options)) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, 2, named(hosts...), adjust...)
		a, b := all[0], all[1]
		g := &gates{Records: a.memory}
		b.options.Records = g
		b.restart(t)
		test(t, a, b, g)
	})
}

// follow lets a replica read the records.
func (s *scene) follow(t tester) {
	t.Helper()
	if err := s.bookings.Follow(t.Context()); err != nil {
		t.Fatalf("%s follows: %v", s.options.Replica, err)
	}
}

// loseAnswer lets one commit be stored, waits for lose, and then returns an error for it.
func (g *gates) loseAnswer() (lose chan<- struct{}) {
	wait, first := make(chan struct{}), true
	g.set(func(g *gates) {
		g.afterCommit = func(booking.Commit) error {
			if !first {
				return nil
			}
			first = false
			<-wait
			return fault.New(fault.Unavailable, "the database does not answer")
		}
	})
	return wait
}

// holdCommit holds up the first commit that meant accepts, until goOn is closed.
func (g *gates) holdCommit(meant func(c booking.Commit) bool) (goOn chan<- struct{}) {
	wait, first := make(chan struct{}), true
	g.set(func(g *gates) {
		g.beforeCommit = func(c booking.Commit) error {
			g.mu.Lock()
			mine := first && meant(c)
			first = first && !mine
			g.mu.Unlock()
			if mine {
				<-wait
			}
			return nil
		}
	})
	return wait
}

func anyCommit(booking.Commit) bool { return true }

// hides are records whose Recall leaves out a reservation, unless the caller names it.
type hides struct {
	booking.Records
	id string
}

func (h hides) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	got, err := h.Records.Recall(ctx, q)
	if !slices.Contains(q.IDs, h.id) {
		got.Log = slices.DeleteFunc(got.Log, func(e booking.LogEntry) bool { return e.ID == h.id })
		got.Reservations = slices.DeleteFunc(got.Reservations, func(r reservation.Reservation) bool { return r.ID == h.id })
	}
	return got, err
}
