// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/precondition"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// expecting returns the owner, whose change is for one version alone.
func expecting(version string) booking.Caller {
	by := owner
	by.Expected = precondition.Expect(version)
	return by
}

// overtaken reports whether an error is that somebody has changed this.
func overtaken(what string) func(error) bool {
	return says(fault.Precondition, "the "+what+" has changed since it was read")
}

func TestAChangeIsOfTheVersionThatItsCallerExpects(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	r := s.book(t, during(1, 100, 200))
	read := r.VersionText()
	s.change(t, r.ID, renamed("other"))
	s.refuses(t, "a change", overtaken("reservation"), func() error {
		_, err := s.bookings.Change(t.Context(), expecting(read), r.ID, quantity(2))
		return err
	})
	s.refuses(t, "a change of nothing", overtaken("reservation"), func() error {
		_, err := s.bookings.Change(t.Context(), expecting(read), r.ID, renamed("other"))
		return err
	})
	s.refuses(t, "an offer", overtaken("reservation"), func() error {
		_, err := s.bookings.OfferChange(t.Context(), expecting(read), r.ID, quantity(2))
		return err
	})
	s.refuses(t, "a cancellation", overtaken("reservation"), func() error {
		_, err := s.bookings.Cancel(t.Context(), expecting(read), r.ID)
		return err
	})
	now := s.get(t, r.ID)
	changed, err := s.bookings.Change(t.Context(), expecting(now.VersionText()), r.ID, quantity(2))
	if err != nil || changed.Quantity != 2 {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := s.bookings.Cancel(t.Context(), expecting(changed.VersionText()), r.ID); err != nil {
		t.Fatal(err)
	}
	s.refuses(t, "what is over", overtaken("reservation"), func() error {
		_, err := s.bookings.Change(t.Context(), expecting(changed.VersionText()), r.ID, quantity(1))
		return err
	})
}

func TestAChangeOfALeaseIsOfTheVersionThatItsCallerExpects(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	read, member := l.VersionText(), l.Reservations[0]
	s.change(t, member.ID, renamed("other")) // a change of its reservation alone is one of the lease
	for what, act := range map[string]func() error{
		"a change": func() error {
			_, err := s.bookings.ChangeLease(t.Context(), expecting(read), l.ID, timed(0, 4100))
			return err
		},
		"an offer": func() error {
			_, err := s.bookings.OfferLeaseChange(t.Context(), expecting(read), l.ID, timed(0, 4100))
			return err
		},
		"a cancellation": func() error { _, err := s.bookings.CancelLease(t.Context(), expecting(read), l.ID); return err },
	} {
		s.refuses(t, what, overtaken("lease"), act)
	}
	for what, act := range map[string]func() error{
		"its reservation": func() error {
			_, err := s.bookings.Change(t.Context(), expecting(member.VersionText()), member.ID, ends(4100))
			return err
		},
		"its canceled reservation": func() error {
			_, err := s.bookings.Cancel(t.Context(), expecting(member.VersionText()), member.ID)
			return err
		},
	} {
		s.refuses(t, what, overtaken("reservation"), act)
	}
	now := s.leases(t)[0]
	changed, err := s.bookings.ChangeLease(t.Context(), expecting(now.VersionText()), l.ID, timed(0, 4100))
	if err != nil || changed.Span.End != at(4100) {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := s.bookings.Change(t.Context(), expecting(changed.Reservations[0].VersionText()), member.ID, ends(4200)); err != nil {
		t.Errorf("a change of its reservation: %v", err)
	}
	if _, err := s.bookings.CancelLease(t.Context(), expecting(s.leases(t)[0].VersionText()), l.ID); err != nil {
		t.Errorf("a cancellation: %v", err)
	}
}

// A replica whose memory is older than what its client has read elsewhere reads the reservation again.
func TestAReplicaThatIsBehindKnowsTheVersionThatItsClientHasRead(t *testing.T) {
	all := replicas(t, 2, named("a", "b"))
	read := all[0].book(t, during(1, 100, 200))
	all[1].follow(t)
	now := all[0].change(t, read.ID, renamed("other"))
	if _, err := all[1].bookings.Change(t.Context(), expecting(read.VersionText()), read.ID, quantity(2)); !fault.Is(err, fault.Precondition) {
		t.Errorf("a change of the version that only this replica still has: %v", err)
	}
	now = all[0].change(t, read.ID, renamed("third"))
	if _, err := all[1].bookings.Change(t.Context(), expecting(now.VersionText()), read.ID, quantity(2)); err != nil {
		t.Errorf("a change of the version that another replica has stored: %v", err)
	}
	agree(t, all)
}

// Of several changes of the same version at several replicas, one is stored, and each other one hears that it came too late.
func TestOfChangesOfTheSameVersionOneIsStored(t *testing.T) {
	const clients = 6
	for name, act := range map[string]func(ctx context.Context, s *scene, l reservation.LeaseRecord, client, round int) error{
		"a reservation": func(ctx context.Context, s *scene, l reservation.LeaseRecord, client, round int) error {
			r := &l.Reservations[0]
			_, err := s.bookings.Change(ctx, expecting(r.VersionText()), r.ID, renamed(fmt.Sprint(client, " in ", round)))
			return err
		},
		"a reservation with its lease": func(ctx context.Context, s *scene, l reservation.LeaseRecord, client, round int) error {
			r := &l.Reservations[0]
			_, err := s.bookings.Change(ctx, expecting(r.VersionText()), r.ID, ends(int64(4100+10*round+client)))
			return err
		},
		"a lease": func(ctx context.Context, s *scene, l reservation.LeaseRecord, client, round int) error {
			_, err := s.bookings.ChangeLease(ctx, expecting(l.VersionText()), l.ID, reservation.LeaseChange{Name: new(fmt.Sprint(client, " in ", round))})
			return err
		},
		"the reservation of a lease, as a part of it": func(ctx context.Context, s *scene, l reservation.LeaseRecord, client, round int) error {
			c := reservation.LeaseChange{Members: []reservation.MemberChange{{ID: l.Reservations[0].ID, HypervisorProperties: new(fmt.Sprint(client, " in ", round))}}}
			_, err := s.bookings.ChangeLease(ctx, expecting(l.VersionText()), l.ID, c)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := replicas(t, 3, named("a", "b", "c"), unsteady(0))
			all[0].lease(t, leaseOf(whole(1, 1)))
			for round := range 20 {
				l := all[0].leases(t)[0]
				errs := make([]error, clients)
				var group sync.WaitGroup
				for i := range clients {
					group.Go(func() { errs[i] = act(t.Context(), all[i%3], l, i, round) })
				}
				group.Wait()
				stored := 0
				for _, err := range errs {
					switch {
					case err == nil:
						stored++
					case !fault.Is(err, fault.Precondition):
						t.Errorf("round %d: %v", round, err)
					}
				}
				if now := all[0].leases(t)[0]; stored != 1 || now.VersionText() == l.VersionText() {
					t.Errorf("round %d: %d changes were stored, and the version is %s after %s", round, stored, now.VersionText(), l.VersionText())
				}
			}
			agree(t, all)
		})
	}
}

// The version of a lease never repeats, whatever is changed of it, and neither does that of a reservation.
func TestEachStoredChangeIsANewVersion(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), small(1)))
	seen := map[string]bool{l.VersionText(): true}
	for i, change := range []func(){
		func() { s.changeLease(t, l.ID, timed(0, 4100)) },
		func() { s.change(t, l.Reservations[0].ID, renamed("x")) },
		func() { s.change(t, l.Reservations[1].ID, renamed("y")) },
		func() { s.changeLease(t, l.ID, reservation.LeaseChange{Name: new("z")}) },
		func() { s.passTo(t, at(700)) },
	} {
		change()
		version := s.leases(t)[0].VersionText()
		if seen[version] || strings.Contains(version, "-") {
			t.Errorf("change %d: the version %s is not new, or would be cut", i, version)
		}
		seen[version] = true
	}
}
