// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestACanceledLeaseDisappearsAndItsHostsAreFree(t *testing.T) {
	for what, now := range map[string]int64{"before its start": 0, "active": 700} {
		s := newScene(t, named("a", "b"))
		l := s.lease(t, leaseOf(whole(1, 1), small(1)))
		s.passTo(t, at(now))
		gone := s.cancelLease(t, l.ID)
		for _, r := range gone.Reservations {
			if r.Status != reservation.Canceled || s.get(t, r.ID).Status != reservation.Canceled {
				t.Errorf("%s: a reservation is %s", what, r.Status)
			}
		}
		if gone.Deleted != at(now) || len(s.leases(t)) != 0 {
			t.Errorf("%s: the leases are %+v", what, s.leases(t))
		}
		if _, err := s.bookings.CancelLease(t.Context(), owner, l.ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: once more: %v, want NotFound", what, err)
		}
		if _, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, timed(0, 5000)); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: a change afterwards: %v, want NotFound", what, err)
		}
		s.book(t, during(2, now, 5000))
		s.check(t)
	}
}

func TestALeaseThatIsOverIsDeletedWithoutItsHistory(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	s.passTo(t, at(600))
	s.passTo(t, at(4200))
	s.cancelLease(t, l.ID)
	if r := s.get(t, l.Reservations[0].ID); r.Status != reservation.Ended || len(s.leases(t)) != 0 {
		t.Errorf("the reservation is %s, the leases are %+v", r.Status, s.leases(t))
	}
}

func TestALeaseWithoutReservationsIsChangedAndCanceled(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf())
	if l = s.changeLease(t, l.ID, timed(700, 5000)); l.Span != (span.Span{Start: at(700), End: at(5000)}) || l.Version != 2 {
		t.Errorf("got %+v", l)
	}
	s.now.Store(int64(at(700)))
	if l = s.changeLease(t, l.ID, timed(0, 700)); l.Span.End != at(701) {
		t.Errorf("it ends at %v", l.Span.End)
	}
	if s.cancelLease(t, l.ID); len(s.leases(t)) != 0 {
		t.Errorf("the leases are %+v", s.leases(t))
	}
}

func TestAReservationOfNoLeaseIsChangedAsOne(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	req := during(1, 600, 4200)
	req.Name, req.BeforeEnd = "mine", 600
	r := s.book(t, req)
	c := timed(900, 5000)
	c.Name, c.Members = new("yours"), bounds(r.ID, 2, 4).Members
	l := s.changeLease(t, r.ID, c)
	got := s.get(t, r.ID)
	if l.ID != r.ID || l.Name != "yours" || l.Span != (span.Span{Start: at(900), End: at(5000)}) || l.BeforeEnd != at(4400) {
		t.Errorf("the lease is %+v", l)
	}
	if got.Name != "yours" || got.Span != l.Span || got.Quantity != 3 || got.BeforeEnd != 600 || got.Membership != (reservation.Membership{Min: 2, Max: 4}) {
		t.Errorf("the reservation is %+v", got)
	}
	if got.Version != 2 {
		t.Errorf("it has version %d", got.Version)
	}
	if diff := cmp.Diff([]reservation.LeaseRecord{l}, s.leases(t)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if same := s.changeLease(t, r.ID, timed(0, 5000)); same.Version != 2 {
		t.Error("a change without effect is stored")
	}
	if s.cancelLease(t, r.ID); s.get(t, r.ID).Status != reservation.Canceled || len(s.leases(t)) != 0 {
		t.Errorf("the leases are %+v", s.leases(t))
	}
	if _, err := s.bookings.CancelLease(t.Context(), owner, r.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("once more: %v, want NotFound", err)
	}
}

func TestAReservationOfNoLeaseThatIsOverIsHiddenAsALease(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.book(t, during(1, 0, 100))
	s.passTo(t, at(0))
	s.passTo(t, at(100))
	if len(s.leases(t)) != 1 {
		t.Fatal("an ended reservation is no lease")
	}
	s.cancelLease(t, r.ID)
	if got := s.get(t, r.ID); got.Status != reservation.Ended || len(s.leases(t)) != 0 {
		t.Errorf("the reservation is %s, the leases are %+v", got.Status, s.leases(t))
	}
	if _, err := s.bookings.CancelLease(t.Context(), owner, r.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("once more: %v, want NotFound", err)
	}
}

// A warning that would be before the start is at the start, and the reservation keeps its before_end for a later end.
func TestTheOnlyReservationOfALeaseKeepsItsWarningInAShorterTime(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1))) // is warned 600 s before its end
	id := l.Reservations[0].ID
	for _, step := range []struct {
		to      planning.Change
		warning int64
	}{
		{planning.Change{Start: new(at(3900)), Name: new("later")}, 3900},
		{planning.Change{End: new(at(9000))}, 8400},
	} {
		s.change(t, id, step.to)
		if l = s.leases(t)[0]; l.BeforeEnd != at(step.warning) || l.Reservations[0].BeforeEnd != 600 {
			t.Errorf("in %v the lease warns at %v, and the reservation %d s before its end", l.Span, l.BeforeEnd, l.Reservations[0].BeforeEnd)
		}
		s.checkLeases(t)
	}
}

func TestTheOnlyReservationOfALeaseChangesTheLease(t *testing.T) {
	s := newScene(t, named("a", "b"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	id := l.Reservations[0].ID
	s.change(t, id, planning.Change{Start: new(at(700)), End: new(at(9000)), Name: new("member"), Quantity: new(2)})
	l = s.leases(t)[0]
	if l.Span != (span.Span{Start: at(700), End: at(9000)}) || l.BeforeEnd != at(8400) || l.Version != 2 || l.Name != "course" {
		t.Errorf("the lease is %+v", l.Lease)
	}
	if m := l.Reservations[0].Membership; m.Min != 1 || m.Max != 2 || l.Reservations[0].Name != "member" {
		t.Errorf("the reservation is %+v", l.Reservations[0])
	}
	s.checkLeases(t)
	if r, err := s.bookings.Cancel(t.Context(), owner, id); err != nil || r.Status != reservation.Canceled || len(s.leases(t)) != 0 {
		t.Errorf("canceled: %+v, %v; the leases are %+v", r, err, s.leases(t))
	}
	s.check(t)
}

func TestOneOfSeveralReservationsOfALeaseHasItsTimes(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), whole(1, 2)))
	id := l.Reservations[0].ID
	inLease := says(fault.Conflict, l.ID)
	for what, act := range map[string]func(ctx context.Context) error{
		"another end": func(ctx context.Context) error { _, err := s.bookings.Change(ctx, owner, id, ends(9000)); return err },
		"another start": func(ctx context.Context) error {
			_, err := s.bookings.Change(ctx, owner, id, planning.Change{Start: new(at(700))})
			return err
		},
		"an offer": func(ctx context.Context) error {
			_, err := s.bookings.OfferChange(ctx, owner, id, ends(9000))
			return err
		},
		"canceling it": func(ctx context.Context) error { _, err := s.bookings.Cancel(ctx, owner, id); return err },
	} {
		s.refuses(t, what, inLease, func() error { return act(t.Context()) })
	}
	// The second has two of the three hosts.
	s.change(t, l.Reservations[1].ID, quantity(1))
	r := s.change(t, id, planning.Change{Name: new("first"), Quantity: new(2), End: new(at(4200))})
	if r.Quantity != 2 || r.Name != "first" || r.Membership.Min != 1 || r.Membership.Max != 2 {
		t.Errorf("got %+v", r)
	}
	if got := s.leases(t)[0]; got.Version != 1 || got.Name != "course" {
		t.Errorf("the lease is %+v", got.Lease)
	}
	s.check(t)
}

func TestALeaseOfAnotherProjectDoesNotExist(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(whole(1, 1)))
	stranger := booking.Caller{ProjectID: "other"}
	s.refuses(t, "a stranger's change", says(fault.NotFound, l.ID), func() error {
		_, err := s.bookings.ChangeLease(t.Context(), stranger, l.ID, timed(0, 5000))
		return err
	})
	s.refuses(t, "a stranger's cancellation", says(fault.NotFound, l.ID), func() error {
		_, err := s.bookings.CancelLease(t.Context(), stranger, l.ID)
		return err
	})
	stranger.Admin = true
	if _, err := s.bookings.ChangeLease(t.Context(), stranger, l.ID, timed(0, 5000)); err != nil {
		t.Errorf("an admin: %v", err)
	}
}

func TestAChangeOfALeaseNamesItsCaller(t *testing.T) {
	s := newScene(t, named("a"))
	causes := &recorded{Records: s.memory}
	s.options.Records = causes
	s.restart(t)
	l := s.lease(t, leaseOf(whole(1, 1)))
	by := booking.Caller{ProjectID: owner.ProjectID, UserID: "eve", RequestID: "req-1"}
	if _, err := s.bookings.ChangeLease(t.Context(), by, l.ID, timed(0, 5000)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bookings.CancelLease(t.Context(), by, l.ID); err != nil {
		t.Fatal(err)
	}
	for i, want := range []reservation.Action{reservation.ActionModify, reservation.ActionCancel} {
		c := causes.list[i+1]
		if c.Action != want || c.UserID != "eve" || c.RequestID != "req-1" || (c.Detail == "") != (i == 1) {
			t.Errorf("the cause is %+v, want %s", c, want)
		}
	}
}

// recorded are records that collect the causes of changes.
type recorded struct {
	*memory.Records
	list []reservation.Cause
}

func (r *recorded) Commit(ctx context.Context, c booking.Commit) error {
	for _, v := range c.Revisions {
		r.list = append(r.list, v.Cause)
	}
	return r.Records.Commit(ctx, c)
}
