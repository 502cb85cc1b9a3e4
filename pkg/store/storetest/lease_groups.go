package storetest

import (
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testLeaseGroups(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a lease and its reservations are stored together", func(t *testing.T) { testTogether(t, open(t)) })
	t.Run("a lease needs the version that it was decided on", func(t *testing.T) { testLeaseVersion(t, open(t)) })
	t.Run("leases are listed with reservations of no lease, without deleted ones", func(t *testing.T) { testLeaseList(t, open(t)) })
	t.Run("an unknown or foreign lease is not found", func(t *testing.T) { testNoLease(t, open(t)) })
}

// leaseAt returns a new lease that starts that many seconds after booked does.
func leaseAt(id string, seconds int64) reservation.Lease {
	held := span.New(booked("").Span.Start.Add(seconds), 7200)
	return reservation.Lease{
		ID: id, ProjectID: "demo", UserID: "ada", Name: "course", Span: held, BeforeEnd: held.End - 60,
		Events: `[{"event_type":"notify"}]`, Created: 1_799_000_000, Updated: 1_799_000_000, Version: 1,
	}
}

// memberOf returns the revision of a new reservation of a lease.
func memberOf(l reservation.Lease, id string) booking.Revision {
	r := booked(id)
	r.Span, r.Claims = l.Span, []reservation.Claim{{Host: "host of " + id, Span: l.Span}}
	r.Membership = reservation.Membership{
		LeaseID: l.ID, Min: 1, Max: 3, HypervisorProperties: `[">=","$vcpus","4"]`,
	}
	return booking.Revision{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate}}
}

func commitLease(t *testing.T, s Subject, l reservation.Lease, members ...booking.Revision) error {
	t.Helper()
	return s.Commit(t.Context(), booking.Commit{Lease: &l, Revisions: members})
}

func mustCommitLease(t *testing.T, s Subject, l reservation.Lease, members ...booking.Revision) {
	t.Helper()
	if err := commitLease(t, s, l, members...); err != nil {
		t.Fatal(err)
	}
}

func wantLease(t *testing.T, s Subject, want reservation.LeaseRecord) {
	t.Helper()
	got, err := offered[reservation.LeaseReader](t, s).Lease(t.Context(), want.ID)
	if d := diff(want, got); d != "" || err != nil {
		t.Errorf("lease %s (-want +got): %v\n%s", want.ID, err, d)
	}
}

func testTogether(t *testing.T, s Subject) {
	l := leaseAt("lease", 0)
	one, two := memberOf(l, "one"), memberOf(l, "two")
	mustCommitLease(t, s, l, two, one)
	wantLease(t, s, reservation.LeaseRecord{Lease: l, Reservations: []reservation.Reservation{one.Reservation, two.Reservation}})
	wantStored(t, s, two.Reservation)

	other := leaseAt("other", 0)
	taken := memberOf(other, "two")
	if err := commitLease(t, s, other, memberOf(other, "new"), taken); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a lease with a reservation that exists already: %v, want ErrStale", err)
	}
	if _, err := s.Get(t.Context(), "new"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other reservation of a refused lease: %v, want NotFound", err)
	}
	if _, err := offered[reservation.LeaseReader](t, s).Lease(t.Context(), "other"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the refused lease: %v, want NotFound", err)
	}
	empty := leaseAt("empty", 0)
	mustCommitLease(t, s, empty)
	wantLease(t, s, reservation.LeaseRecord{Lease: empty})
}

func testLeaseVersion(t *testing.T, s Subject) {
	l := leaseAt("lease", 0)
	mustCommitLease(t, s, l)
	for _, version := range []int64{1, 3} {
		stale := l
		stale.Name, stale.Version = "stale", version
		if err := commitLease(t, s, stale, memberOf(l, "late")); !errors.Is(err, reservation.ErrStale) {
			t.Errorf("version %d after version 1: %v, want ErrStale", version, err)
		}
	}
	if _, err := s.Get(t.Context(), "late"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a reservation with a stale lease: %v, want NotFound", err)
	}
	l.Name, l.Version = "renamed", 2
	mustCommitLease(t, s, l)
	wantLease(t, s, reservation.LeaseRecord{Lease: l})
}

func testLeaseList(t *testing.T, s Subject) {
	reader := offered[reservation.LeaseReader](t, s)
	first, last, gone, foreign := leaseAt("first", -10), leaseAt("last", 10), leaseAt("gone", 0), leaseAt("foreign", 0)
	foreign.ProjectID = "other"
	for _, l := range []reservation.Lease{last, first, gone, foreign} {
		mustCommitLease(t, s, l, memberOf(l, "member of "+l.ID))
	}
	gone.Deleted, gone.Version = gone.Created, 2
	mustCommitLease(t, s, gone)
	canceled := booked("canceled")
	canceled.Status = reservation.Canceled
	mustCreate(t, s, canceled)
	mustCreate(t, s, booked("own"))
	for _, c := range []struct {
		q    reservation.LeaseQuery
		want []string
	}{
		{reservation.LeaseQuery{ProjectID: "demo"}, []string{"first", "own", "last"}},
		{reservation.LeaseQuery{}, []string{"first", "foreign", "own", "last"}},
		{reservation.LeaseQuery{Limit: 2}, []string{"first", "foreign"}},
		{reservation.LeaseQuery{Marker: "foreign", Limit: 1}, []string{"own"}},
		{reservation.LeaseQuery{ProjectID: "demo", Marker: "own"}, []string{"last"}},
		{reservation.LeaseQuery{ProjectID: "nobody"}, nil},
	} {
		list, err := reader.Leases(t.Context(), c.q)
		var got []string
		for _, l := range list {
			got = append(got, l.ID)
			if len(l.Reservations) != 1 {
				t.Errorf("%s has %d reservations, want 1", l.ID, len(l.Reservations))
			}
		}
		if d := diff(c.want, got); d != "" || err != nil {
			t.Errorf("%+v (-want +got): %v\n%s", c.q, err, d)
		}
	}
	if _, err := reader.Leases(t.Context(), reservation.LeaseQuery{ProjectID: "demo", Marker: "foreign"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a marker of another project: %v, want Invalid", err)
	}
}

func testNoLease(t *testing.T, s Subject) {
	reader := offered[reservation.LeaseReader](t, s)
	l := leaseAt("lease", 0)
	mustCommitLease(t, s, l, memberOf(l, "member"))
	for _, id := range []string{"nobody", "member"} {
		if _, err := reader.Lease(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", id, err)
		}
	}
	r := booked("own")
	mustCreate(t, s, r)
	wantLease(t, s, reservation.OwnLease(r))
}
