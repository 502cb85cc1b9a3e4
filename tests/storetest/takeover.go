// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

type takesOver interface {
	reservation.LeaseReader
	settings
	instanceRecords
	outbox
	TakeOver(ctx context.Context, t booking.TakeOver, at span.Instant) error
	StoredOf(ctx context.Context, ids []string) (map[string]bool, error)
}

// promised returns n leases on hosts of their own, each with a reservation of a host, and every
// other one with one of instances.
func promised(n int) (leases []reservation.LeaseRecord) {
	for i := range n {
		id, when := fmt.Sprint("lease-", i), span.Span{Start: 100, End: 200}
		l := reservation.LeaseRecord{Lease: reservation.Lease{ID: id, ProjectID: fmt.Sprint("project-", i%3), Name: "a", Span: when, Created: 1, Version: 1}}
		for k, kind := range reservation.HostKinds[:1+i%2] {
			r := reservation.Reservation{
				ID: fmt.Sprint(id, "-", kind), ProjectID: l.ProjectID, Status: reservation.Active, Span: when, Created: 1, Updated: 50, Version: 1,
				Terms:      reservation.Terms{Name: "a", Kind: kind, Quantity: 1, Policy: "first-fit", Affinity: "none", OnEnd: "delete"},
				Membership: reservation.Membership{LeaseID: id, Min: 1, Max: 2},
				Claims:     []reservation.Claim{{Host: fmt.Sprint("host-", i), Span: when, Slices: k}},
				Events:     []reservation.Event{{Type: "start", Time: 100, State: "done", Done: 100}, {Type: "end", Time: 200, State: "pending"}},
			}
			l.Reservations = append(l.Reservations, r)
		}
		leases = append(leases, l)
	}
	return leases
}

func testTakingOver(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("all of it is stored, and told of to nobody", func(t *testing.T) {
		s, leases := offered[takesOver](t, open(t)), promised(3)
		change := booking.NewTakeOver(leases, nil)
		change.Guests = map[string]string{"server": "lease-0-host"}
		change.Pool = takeover.Pool{
			Hosts:  []takeover.Enrolled{{Name: "host-1", Number: 7, Capabilities: map[string]string{"gpu": "True"}, Created: 5}},
			Hidden: []string{"gpu"},
		}
		if err := s.TakeOver(t.Context(), change, 60); err != nil {
			t.Fatal(err)
		}
		got, err := listed(t, s, reservation.LeaseQuery{})
		if d := diff(leases, got); err != nil || d != "" {
			t.Errorf("%v, leases (-want +got):\n%s", err, d)
		}
		guests, _ := s.InstanceRecords(t.Context())
		if d := diff(map[string]inventory.InstanceRecord{"server": {Reservation: "lease-0-host"}}, guests); d != "" {
			t.Errorf("guests (-want +got):\n%s", d)
		}
		set, _ := s.Overrides(t.Context())
		if o := set["host-1"]; o.Reservable == nil || !*o.Reservable || o.Capabilities == nil || o.Capabilities.Texts["gpu"] != "True" {
			t.Errorf("settings %v", set)
		}
		hidden, _ := s.Hidden(t.Context())
		numbers, _ := s.HostNumbers(t.Context(), nil)
		waiting, _, err := s.Waiting(t.Context())
		if err != nil || !hidden["gpu"] || numbers["host-1"] != 7 || waiting != 0 {
			t.Errorf("hidden %v, numbers %v, %d notifications wait, %v", hidden, numbers, waiting, err)
		}
	})
	t.Run("what replicas recall is what is taken over", func(t *testing.T) {
		s := open(t)
		if err := offered[takesOver](t, s).TakeOver(t.Context(), booking.NewTakeOver(promised(3), nil), 60); err != nil {
			t.Fatal(err)
		}
		got, err := s.Recall(t.Context(), booking.Recall{})
		if err != nil || len(got.Reservations) != 4 || len(got.Log) != 4 {
			t.Errorf("%d reservations, %d entries of the log, %v", len(got.Reservations), len(got.Log), err)
		}
		if d := diff([]booking.HostVersion{{Host: "host-0", Version: 1}, {Host: "host-1", Version: 1}, {Host: "host-2", Version: 1}}, got.Hosts); d != "" {
			t.Errorf("versions (-want +got):\n%s", d)
		}
	})
	t.Run("many leases are stored at once", func(t *testing.T) {
		s, leases := offered[takesOver](t, open(t)), promised(2500)
		if err := s.TakeOver(t.Context(), booking.NewTakeOver(leases, nil), 60); err != nil {
			t.Fatal(err)
		}
		if got, err := listed(t, s, reservation.LeaseQuery{}); err != nil || len(got) != len(leases) {
			t.Errorf("%d leases, %v", len(got), err)
		}
	})
	for name, change := range map[string]func(t *testing.T, s takesOver) booking.TakeOver{
		"a lease that is stored already": func(t *testing.T, s takesOver) booking.TakeOver {
			if err := s.TakeOver(t.Context(), booking.NewTakeOver(promised(1), nil), 60); err != nil {
				t.Fatal(err)
			}
			return booking.NewTakeOver(promised(2), []booking.HostVersion{{Host: "host-0", Version: 1}})
		},
		"a host that has changed": func(*testing.T, takesOver) booking.TakeOver {
			return booking.NewTakeOver(promised(2), []booking.HostVersion{{Host: "host-1", Version: 3}})
		},
	} {
		t.Run(name+" stores nothing", func(t *testing.T) {
			s := offered[takesOver](t, open(t))
			if err := s.TakeOver(t.Context(), change(t, s), 60); !errors.Is(err, reservation.ErrStale) {
				t.Errorf("%v", err)
			}
			if stored, err := s.StoredOf(t.Context(), []string{"lease-1", "lease-1-host"}); err != nil || len(stored) > 0 {
				t.Errorf("%v, %v", stored, err)
			}
		})
	}
}
