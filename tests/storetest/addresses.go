// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// addressPool is the pool of floating IPs of a store.
type addressPool interface {
	booking.Addresses
	Enrolled(ctx context.Context) ([]address.Enrolled, error)
	Enroll(ctx context.Context, a address.Enrolled) error
	Withdraw(ctx context.Context, id string) error
}

func testAddresses(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the pool has what was enrolled", func(t *testing.T) { testEnrolling(t, open(t)) })
	t.Run("the pool has the claims of live reservations", func(t *testing.T) { testClaimedAddresses(t, open(t)) })
	t.Run("an address that is removed is not claimed", func(t *testing.T) { testWithdrawing(t, open(t)) })
}

// offering returns the pool of a store with addresses "a0", "a1", … of network "n", whose ids are the same.
func offering(t *testing.T, s Subject, addresses int) addressPool {
	t.Helper()
	pool := offered[addressPool](t, s)
	for i := range addresses {
		ip := fmt.Sprint("a", i)
		if err := pool.Enroll(t.Context(), address.Enrolled{ID: ip, Network: "n", Subnet: "s", Address: ip, Created: 100}); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// holding returns a pending reservation of addresses of network "n".
func holding(id string, addresses ...string) reservation.Reservation {
	r := booked(id)
	r.Kind, r.Quantity, r.Claims = reservation.Addresses, len(addresses), nil
	for i, a := range addresses {
		r.Addresses = append(r.Addresses, address.Claim{Network: "n", Address: a, Required: i == 0})
	}
	return r
}

// claim stores a reservation that was decided on a version of the pool.
func claim(t *testing.T, s Subject, r reservation.Reservation, version int64) error {
	return s.Commit(t.Context(), booking.Commit{
		Revisions: []booking.Revision{{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate}}},
		Hosts:     []booking.HostVersion{{Host: address.VersionKey("n"), Version: version}},
	})
}

func mustPool(t *testing.T, pool booking.Addresses, network string) address.Pool {
	t.Helper()
	p, err := pool.Pool(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testEnrolling(t *testing.T, s Subject) {
	pool := offered[addressPool](t, s)
	want := []address.Enrolled{
		{ID: "1", Network: "m", Subnet: "s", Address: "198.51.100.10", Created: 7},
		{ID: "2", Network: "n", Subnet: "s", Address: "198.51.100.9", Created: 8},
		{ID: "3", Network: "n", Subnet: "s", Address: "198.51.100.10", Created: 9},
		{ID: "4", Network: "n", Subnet: "s", Address: "2001:db8::1", Created: 9},
	}
	for _, i := range []int{3, 2, 0, 1} {
		if err := pool.Enroll(t.Context(), want[i]); err != nil {
			t.Fatal(err)
		}
	}
	again := want[1]
	again.ID = "5"
	if err := pool.Enroll(t.Context(), again); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same address again: %v", err)
	}
	if got, err := pool.Enrolled(t.Context()); err != nil || diff(want, got) != "" {
		t.Errorf("enrolled (-want +got):\n%s%v", diff(want, got), err)
	}
	if got := mustPool(t, pool, "n"); diff(address.Pool{Network: "n", Addresses: []string{"198.51.100.9", "198.51.100.10", "2001:db8::1"}}, got) != "" {
		t.Errorf("the pool is %+v", got)
	}
	if got := mustPool(t, pool, "unknown"); diff(address.Pool{Network: "unknown"}, got) != "" {
		t.Errorf("a network without addresses is %+v", got)
	}
}

func testClaimedAddresses(t *testing.T, s Subject) {
	pool := offering(t, s, 3)
	r := holding("r", "a2", "a0")
	if err := claim(t, s, r, 0); err != nil {
		t.Fatal(err)
	}
	wantStored(t, s, r)
	if err := claim(t, s, holding("other", "a1"), 0); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a claim that was decided before: %v", err)
	}
	want := address.Pool{Network: "n", Addresses: []string{"a0", "a1", "a2"}, Version: 1, Booked: []address.Booked{
		{Reservation: "r", Address: "a2", Span: r.Span}, {Reservation: "r", Address: "a0", Span: r.Span},
	}}
	if d := diff(want, mustPool(t, pool, "n")); d != "" {
		t.Errorf("the pool (-want +got):\n%s", d)
	}
	r.Version, r.Span = 2, span.New(r.Span.Start, 60)
	r.Addresses = []address.Claim{{Network: "n", Address: "a1"}, {Network: "n", Address: "a0"}}
	mustUpdate(t, s, r)
	wantStored(t, s, r)
	want.Booked = []address.Booked{{Reservation: "r", Address: "a1", Span: r.Span}, {Reservation: "r", Address: "a0", Span: r.Span}}
	if d := diff(want, mustPool(t, pool, "n")); d != "" {
		t.Errorf("after a change (-want +got):\n%s", d)
	}
	r.Version, r.Status = 3, reservation.Ended
	mustUpdate(t, s, r)
	wantStored(t, s, r) // it shows what it had
	if got := mustPool(t, pool, "n"); len(got.Booked) > 0 {
		t.Errorf("after the end there are the claims %v", got.Booked)
	}
}

func testWithdrawing(t *testing.T, s Subject) {
	pool := offering(t, s, 2)
	if err := claim(t, s, holding("r", "a0"), 0); err != nil {
		t.Fatal(err)
	}
	if err := pool.Withdraw(t.Context(), "a0"); !fault.Is(err, fault.Conflict) {
		t.Errorf("a claimed address is removed: %v", err)
	}
	if err := pool.Withdraw(t.Context(), "unknown"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown address is removed: %v", err)
	}
	before := mustPool(t, pool, "n")
	if err := pool.Withdraw(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if err := claim(t, s, holding("late", "a1"), before.Version); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("an address that is gone is claimed: %v", err)
	}
	if err := pool.Withdraw(t.Context(), "a1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is removed twice: %v", err)
	}
}

// testOneAddress makes workers, spread over the stores, claim the addresses of one pool and remove them.
// Each address is claimed once, or removed.
func testOneAddress(t *testing.T, stores ...Subject) {
	const addresses = 6
	pool := offering(t, stores[0], addresses)
	var claimed, removed atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		s := stores[worker%len(stores)]
		wg.Go(func() {
			if worker%4 == 0 {
				for i := range addresses {
					if offered[addressPool](t, s).Withdraw(t.Context(), fmt.Sprint("a", i)) == nil {
						removed.Add(1)
					}
				}
				return
			}
			claimed.Add(claimAll(t, s, worker))
		})
	}
	wg.Wait()
	p := mustPool(t, pool, "n")
	seen := map[string]bool{}
	for _, b := range p.Booked {
		if seen[b.Address] {
			t.Errorf("%s is claimed twice", b.Address)
		}
		seen[b.Address] = true
	}
	if len(p.Booked) != len(p.Addresses) || int64(len(p.Booked)) != claimed.Load() || claimed.Load()+removed.Load() != addresses {
		t.Errorf("%d claimed, %d removed, and the pool is %+v", claimed.Load(), removed.Load(), p)
	}
}

// claimAll claims addresses until none is free, and returns how many it got.
func claimAll(t *testing.T, s Subject, worker int) (got int64) {
	for n := 0; ; n++ {
		p, err := offered[addressPool](t, s).Pool(t.Context(), "n")
		if err != nil {
			t.Error(err)
			return got
		}
		r := holding(fmt.Sprint("r", worker, "-", n))
		claims, short := address.Choose(p, address.Want{Amount: 1, Span: r.Span})
		if short != nil {
			return got
		}
		r.Addresses, r.Quantity = claims, 1
		switch err := claim(t, s, r, p.Version); {
		case err == nil:
			got++
		case !errors.Is(err, reservation.ErrStale):
			t.Error(err)
			return got
		}
	}
}
