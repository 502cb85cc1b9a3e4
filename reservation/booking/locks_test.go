// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// crowded is a scene in which each call finds something to do: a lease of two reservations, a reservation that
// belongs to no lease, one whose start is due, and a project with a limit.
func crowded(t *testing.T) (s *scene, lease reservation.LeaseRecord, alone reservation.Reservation) {
	s = newScene(t, named("a", "b", "c", "d", "e", "f"), limited(planning.Limits{Hosts: 100, EmptyLeases: 10}))
	lease = s.lease(t, leaseOf(whole(1, 1), small(1)))
	alone = s.book(t, only("d", during(1, 600, 4200)))
	s.book(t, only("e", during(1, 10, 4200)))
	s.now.Store(int64(at(20)))
	return s, lease, alone
}

// calls are those that change something, and those that read the records.
func calls(s *scene, lease, alone string) map[string]func(ctx context.Context) error {
	later := at(5000)
	third := func(quantity int) reservation.LeaseRequest {
		req := leaseOf()
		for range quantity {
			req.Members = append(req.Members, small(1))
		}
		return req
	}
	b := s.bookings
	return map[string]func(ctx context.Context) error{
		"Book": func(ctx context.Context) error {
			_, err := b.Book(ctx, owner, only("f", during(1, 600, 4200)), nil)
			return err
		},
		"Book with a key": func(ctx context.Context) error {
			_, err := b.Book(ctx, owner, only("f", during(1, 600, 4200)), &booking.KeyUse{Key: "k", BodyHash: "one"})
			return err
		},
		"Book what is refused": func(ctx context.Context) error {
			_, err := b.Book(ctx, owner, only("d", during(1, 600, 4200)), nil)
			if _, refused := errors.AsType[*reservation.Refusal](err); !refused {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		},
		"BookLease":                      func(ctx context.Context) error { _, err := b.BookLease(ctx, owner, third(2)); return err },
		"BookLease without reservations": func(ctx context.Context) error { _, err := b.BookLease(ctx, owner, third(0)); return err },
		"Change of one alone": func(ctx context.Context) error {
			_, err := b.Change(ctx, owner, alone, planning.Change{End: &later})
			return err
		},
		"ChangeLease": func(ctx context.Context) error {
			_, err := b.ChangeLease(ctx, owner, lease, reservation.LeaseChange{End: &later})
			return err
		},
		"OfferChange": func(ctx context.Context) error {
			_, err := b.OfferChange(ctx, owner, alone, planning.Change{End: &later})
			return err
		},
		"OfferLease": func(ctx context.Context) error { _, err := b.OfferLease(ctx, owner, third(2)); return err },
		"OfferLeaseChange": func(ctx context.Context) error {
			_, err := b.OfferLeaseChange(ctx, owner, lease, reservation.LeaseChange{End: &later})
			return err
		},
		"CancelLease": func(ctx context.Context) error { _, err := b.CancelLease(ctx, owner, lease); return err },
		"Cancel":      func(ctx context.Context) error { _, err := b.Cancel(ctx, owner, alone); return err },
		"Heal": func(ctx context.Context) error {
			_, _, err := b.Heal(ctx, alone, func(host string) (string, bool) { return "it is broken", host == "d" })
			return err
		},
		"CarryOut": func(ctx context.Context) error {
			_, failed := b.CarryOut(ctx)
			for err := range maps.Values(failed) {
				return err
			}
			return nil
		},
		"TakeOver": func(ctx context.Context) error { return b.TakeOver(ctx, func(string) bool { return true }) },
		"Follow":   b.Follow,
		"Resync":   b.Resync,
	}
}

// TestLocksAreTakenInTheirOrder holds each lock while each call is made, and looks which locks the call has while it
// waits. They come before the one that it waits for, gates are left before anything is stored, and nobody waits with
// mu. So no two calls wait for each other.
func TestLocksAreTakenInTheirOrder(t *testing.T) {
	waited := map[string]bool{}
	var names []string
	synctest.Test(t, func(t *testing.T) {
		s, lease, alone := crowded(t)
		names = slices.Sorted(maps.Keys(calls(s, lease.ID, alone.ID)))
	})
	for _, name := range names {
		for i := 0; ; i++ {
			more := false
			synctest.Test(t, func(t *testing.T) {
				s, lease, alone := crowded(t)
				ids := []string{lease.Reservations[0].ID, lease.Reservations[1].ID, alone.ID}
				slices.Sort(ids)
				locks := s.bookings.LocksOf(owner.ProjectID, "k", lease.ID, ids, []string{"a", "b", "c", "d", "e", "f"})
				more = i+1 < len(locks)
				waits(t, name, calls(s, lease.ID, alone.ID)[name], locks, i, waited)
			})
			if !more {
				break
			}
		}
	}
	for _, lock := range []string{"key", "lease without reservations", "lease", "gate of claims", "gate of decisions", "host f", "limit of the project", "reading"} {
		if !waited[lock] {
			t.Errorf("no call waits for the lock %q: the scene lacks one", lock)
		}
	}
}

// waits makes a call while the lock at i is held.
func waits(t *testing.T, name string, call func(context.Context) error, locks []booking.Lock, i int, waited map[string]bool) {
	held := locks[i]
	leave := held.Take(t.Context())
	if leave == nil {
		return // mu is only looked at
	}
	over := make(chan error, 1)
	go func() { over <- call(t.Context()) }()
	synctest.Wait()
	if len(over) == 0 {
		waited[held.Name] = true
		for j, other := range locks {
			switch before := other.Place < held.Place || other.Place == held.Place && j < i; {
			case j == i || !other.Taken():
			case !before:
				t.Errorf("%s has %s while it waits for %s", name, other.Name, held.Name)
			case other.Place == 2 && held.Place > 2:
				t.Errorf("%s has not left %s when it stores, which waits for %s", name, other.Name, held.Name)
			}
		}
	}
	leave()
	if err := <-over; err != nil && !fault.Is(err, fault.Conflict) {
		t.Errorf("%s: %v", name, err)
	}
}
