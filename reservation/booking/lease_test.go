// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// whole asks for hosts as a reservation of a lease.
func whole(least, most int) reservation.MemberRequest {
	return reservation.MemberRequest{Membership: reservation.Membership{Min: least, Max: most}}
}

// small asks for instances of one vCPU as a reservation of a lease.
func small(amount int) reservation.MemberRequest {
	m := whole(amount, amount)
	m.Kind, m.Resources = reservation.Instances, resource.Vector{VCPUs: 1}
	return m
}

func leaseOf(members ...reservation.MemberRequest) reservation.LeaseRequest {
	return reservation.LeaseRequest{Name: "course", Start: at(600), End: at(4200), BeforeEnd: at(3600), Members: members}
}

func (s *scene) lease(t *testing.T, req reservation.LeaseRequest) reservation.LeaseRecord {
	t.Helper()
	l, err := s.bookings.BookLease(t.Context(), owner, req)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheReservationsOfALeaseShareNoHostAndBeginAndEndWithIt(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), whole(2, 2)))
	taken := map[string]int{}
	for _, r := range l.Reservations {
		if r.Membership.LeaseID != l.ID || r.Name != "course" || r.Span != span.New(at(600), 3600) || r.BeforeEnd != 600 {
			t.Errorf("%+v does not have the terms of the lease", r)
		}
		for _, host := range r.HostNames() {
			taken[host]++
		}
	}
	if len(taken) != 3 || taken["a"] != 1 || taken["b"] != 1 || taken["c"] != 1 {
		t.Errorf("the lease holds %v, want each host once", taken)
	}
	s.restart(t)
	if live := s.bookings.Live(span.Always); len(live) != 2 || live[0].Membership.LeaseID != l.ID {
		t.Errorf("after a restart there are %+v", live)
	}
	s.book(t, during(1, 5000, 6000)) // which belongs to no lease
	want := slices.Sorted(slices.Values([]string{l.Reservations[0].ID, l.Reservations[1].ID}))
	if got := s.bookings.InLease(l.ID, l.ProjectID); !slices.Equal(got, want) {
		t.Errorf("the live reservations of the lease are %v, want %v", got, want)
	}
	for lease, project := range map[string]string{l.ID: "somebody", "another": l.ProjectID, "": l.ProjectID} {
		if got := s.bookings.InLease(lease, project); len(got) > 0 {
			t.Errorf("project %s has the reservations %v in lease %q", project, got, lease)
		}
	}
}

func TestALeaseOfWhichOnePartIsRefusedBooksNothing(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	_, err := s.bookings.BookLease(t.Context(), owner, leaseOf(whole(2, 2), small(1), whole(2, 2)))
	if _, refused := errors.AsType[*reservation.Refusal](err); !refused {
		t.Fatalf("got %v, want a refusal", err)
	}
	if live := s.bookings.Live(span.Always); len(live) != 0 {
		t.Errorf("there are %d reservations, want none", len(live))
	}
	s.lease(t, leaseOf(whole(3, 3)))
}

func TestTheReservationsOfALeaseDoNotBlockEachOther(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	_, err := s.bookings.BookLease(t.Context(), owner, leaseOf(whole(2, 2), whole(2, 3)))
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := reservation.Refusal{
		Constraint: reservation.HostsFree, Matched: 3, Free: 1, LargestQuantity: 1, BlockedBy: []reservation.Block{},
		Wanted: refusal.Wanted,
		Message: "not enough hosts available: 2 hosts asked for, there is room for 1 from 2033-05-18T03:43:20Z to 2033-05-18T04:43:20Z, " +
			"beside what else the request needs",
	}
	if d := cmp.Diff(want, *refusal); d != "" {
		t.Errorf("the refusal (-want +got):\n%s", d)
	}
}

func TestAReservationOfALeaseGetsAsManyHostsAsThereAreUpToItsMost(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.lease(t, leaseOf(whole(1, 1)))
	l := s.lease(t, leaseOf(whole(1, 5)))
	if n := l.Reservations[0].Quantity; n != 2 {
		t.Errorf("it has %d hosts, want the 2 that are free", n)
	}
	if _, err := s.bookings.BookLease(t.Context(), owner, leaseOf(whole(1, 5))); err == nil {
		t.Error("a lease without a free host is booked")
	}
}

func TestALeaseMayHaveNoReservations(t *testing.T) {
	s := newScene(t, named("a"))
	if l := s.lease(t, leaseOf()); l.ID == "" || l.Version != 1 || l.Span != span.New(at(600), 3600) {
		t.Errorf("got %+v", l)
	}
}

func TestLeasesWithoutReservationsHaveALimit(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{EmptyLeases: 2}))
	s.lease(t, leaseOf())
	last := s.lease(t, leaseOf()).ID
	s.now.Store(int64(at(5000))) // both have ended
	late := leaseOf()
	late.Start, late.End, late.BeforeEnd = at(6000), at(7000), 0
	s.refuses(t, "one more", says(fault.Denied, "delete those that it does not need"), func() error {
		_, err := s.bookings.BookLease(t.Context(), owner, late)
		return err
	})
	full := late
	full.Members = []reservation.MemberRequest{whole(1, 1)}
	s.lease(t, full)
	if _, err := s.bookings.BookLease(t.Context(), booking.Caller{ProjectID: "another"}, late); err != nil {
		t.Errorf("of another project: %v", err)
	}
	s.cancelLease(t, last)
	s.lease(t, late)
	s.bookings.Configure(planning.Limits{}, s.options.Defaults)
	s.lease(t, late)
}

func TestOfManyLeasesWithoutReservationsAtOnceNoMoreThanTheLimitAreBooked(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{EmptyLeases: 3}), unsteady(0))
	var all sync.WaitGroup
	var booked atomic.Int64
	for range 12 {
		all.Go(func() {
			switch _, err := s.bookings.BookLease(t.Context(), owner, leaseOf()); {
			case err == nil:
				booked.Add(1)
			case !fault.Is(err, fault.Denied):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if booked.Load() != 3 || len(s.leases(t)) != 3 {
		t.Errorf("%d leases are booked, %d stored, want 3", booked.Load(), len(s.leases(t)))
	}
}

func TestAStartOfThePresentMinuteIsNow(t *testing.T) {
	s := newScene(t, named("a"))
	req := leaseOf(whole(1, 1))
	req.Start = at(-planning.LatestPast)
	if l := s.lease(t, req); l.Span.Start != req.Start || l.Reservations[0].Span.Start != at(0) {
		t.Errorf("the lease starts at %v, its reservation at %v; want as asked, and now", l.Span.Start, l.Reservations[0].Span.Start)
	}
	req.Start--
	if _, err := s.bookings.BookLease(t.Context(), owner, req); !fault.Is(err, fault.Invalid) {
		t.Errorf("an older start: %v, want Invalid", err)
	}
}

func TestALeaseOfTooManyReservationsIsInvalid(t *testing.T) {
	s := newScene(t, named("a"))
	if _, err := s.bookings.BookLease(t.Context(), owner, leaseOf(make([]reservation.MemberRequest, 17)...)); !fault.Is(err, fault.Invalid) {
		t.Errorf("17 reservations: %v, want Invalid", err)
	}
}

func TestTheLimitOnHostsCountsTheWholeLease(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d"), limited(planning.Limits{Hosts: 3}))
	if _, err := s.bookings.BookLease(t.Context(), owner, leaseOf(whole(2, 2), whole(2, 2))); err == nil {
		t.Error("a lease of four hosts is booked, the limit is three")
	}
	s.lease(t, leaseOf(whole(2, 2), whole(1, 1)))
}

func TestOfManyLeasesForOneHostOneIsBooked(t *testing.T) {
	s := newScene(t, named("a", "b"))
	var booked atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := s.bookings.BookLease(t.Context(), owner, leaseOf(whole(1, 1), whole(1, 1)))
			if _, refused := errors.AsType[*reservation.Refusal](err); err == nil {
				booked.Add(1)
			} else if !refused {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
	all.Wait()
	if booked.Load() != 1 {
		t.Errorf("%d leases are booked, want 1", booked.Load())
	}
}
