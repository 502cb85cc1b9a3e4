// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// twoReplicas returns two services with two hosts on one database at a fixed time, and the store of
// the first.
func twoReplicas(t *testing.T, connection string, now span.Instant) (desks [2]*booking.Service, first *Store) {
	t.Helper()
	var ids atomic.Int64
	hosts := []inventory.Host{
		{Name: "a", Reservable: true, Capacity: resource.Vector{VCPUs: 8}}, {Name: "b", Reservable: true, Capacity: resource.Vector{VCPUs: 8}},
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range desks {
		s := openFor(t, connection, nil)
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		desks[i], err = booking.Open(t.Context(), booking.Options{
			Records: s, Keys: s, Reader: s, Now: func() span.Instant { return now }, NewID: func() string { return fmt.Sprint("id-", ids.Add(1)) },
			Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		}, snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = s
		}
	}
	return desks, first
}

func TestReplicasChangeALeaseOfSeveralReservationsInTurn(t *testing.T) {
	const now = span.Instant(2_000_000_000)
	by := booking.Caller{ProjectID: "demo", UserID: "ada"}
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			desks, s := twoReplicas(t, start(t)(), now)
			host, instances := reservation.MemberRequest{}, reservation.MemberRequest{}
			host.Min, host.Max, instances.Min, instances.Max = 1, 1, 2, 2
			instances.Kind, instances.Resources = reservation.Instances, resource.Vector{VCPUs: 1}
			l, err := desks[0].BookLease(t.Context(), by, reservation.LeaseRequest{
				Name: "course", Start: now + 600, End: now + 4200, BeforeEnd: now + 3600, Members: []reservation.MemberRequest{host, instances},
			})
			if err != nil {
				t.Fatal(err)
			}
			var clients sync.WaitGroup
			for i := range span.Instant(8) {
				clients.Go(func() {
					c := reservation.LeaseChange{End: new(now + 5000 + i), Members: []reservation.MemberChange{
						{ID: l.Reservations[1].ID, Min: new(int(i + 1)), Max: new(int(i + 1))},
					}}
					if _, err := desks[i%2].ChangeLease(t.Context(), by, l.ID, c); err != nil {
						t.Error(err)
					}
				})
			}
			clients.Wait()
			if l, err = s.Lease(t.Context(), l.ID); err != nil || l.Version != 9 {
				t.Fatalf("after eight changes the lease has version %d: %v", l.Version, err)
			}
			if n := span.Instant(l.Reservations[1].Quantity); l.Span.End != now+4999+n || l.BeforeEnd != l.Span.End-600 {
				t.Errorf("with %d instances the lease is %+v, which no request asked for", n, l.Lease)
			}
			for i, bookings := range desks {
				if err := bookings.Follow(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, want := range l.Reservations {
					got, _ := bookings.Reservation(want.ID)
					if d := cmp.Diff(want, got); d != "" || got.Span != l.Span {
						t.Errorf("replica %d (-stored +got):\n%s", i, d)
					}
				}
			}
			if _, err := desks[1].CancelLease(t.Context(), by, l.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := desks[0].ChangeLease(t.Context(), by, l.ID, reservation.LeaseChange{}); !fault.Is(err, fault.NotFound) {
				t.Errorf("a change of the canceled lease: %v, want NotFound", err)
			}
			if _, err := desks[0].Book(t.Context(), by, reservation.Request{Terms: reservation.Terms{Quantity: 2}, Start: now, Duration: 5000}, nil); err != nil {
				t.Errorf("its hosts are not free: %v", err)
			}
		})
	}
}

// BenchmarkLeases reads 3,000 leases of one host: their states, as every list does, and all of them, as
// the first list of a replica does.
func BenchmarkLeases(b *testing.B) {
	leases := make([]reservation.LeaseRecord, 3000)
	for i := range leases {
		r := sized(fmt.Sprintf("reservation-%024d", i), 1)
		l := reservation.OwnLease(r)
		l.ID, l.Version, r.Membership = fmt.Sprintf("lease-%030d", i), 1, reservation.Membership{LeaseID: l.ID, Min: 1, Max: 1}
		leases[i] = reservation.LeaseRecord{Lease: l.Lease, Reservations: []reservation.Reservation{r}}
	}
	for name, start := range databases {
		b.Run(name, func(b *testing.B) {
			s := openFor(b, start(b)(), nil)
			if _, err := s.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := s.TakeOver(b.Context(), booking.NewTakeOver(leases, nil), 60); err != nil {
				b.Fatal(err)
			}
			var ids []string
			b.Run("states", func(b *testing.B) {
				for b.Loop() {
					states, err := s.LeaseStates(b.Context(), reservation.LeaseQuery{ProjectID: "demo"})
					if err != nil || len(states) != len(leases) {
						b.Fatalf("%d states, %v", len(states), err)
					}
					ids = ids[:0]
					for _, state := range states {
						ids = append(ids, state.ID)
					}
				}
			})
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					if list, err := s.LeasesOf(b.Context(), ids); err != nil || len(list) != len(leases) {
						b.Fatalf("%d leases, %v", len(list), err)
					}
				}
			})
		})
	}
}
