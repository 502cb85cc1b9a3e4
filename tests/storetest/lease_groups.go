// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testLeaseGroups(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a lease and its reservations are stored together", func(t *testing.T) { testTogether(t, open(t)) })
	t.Run("a lease needs the version that it was decided on", func(t *testing.T) { testLeaseVersion(t, open(t)) })
	t.Run("leases are listed with reservations of no lease, without deleted ones and maintenance", func(t *testing.T) { testLeaseList(t, open(t)) })
	t.Run("an unknown or foreign lease is not found", func(t *testing.T) { testNoLease(t, open(t)) })
	t.Run("a lease and all its reservations change together", func(t *testing.T) { testChangeTogether(t, open(t)) })
	t.Run("a reservation of no lease is hidden by a deleted lease", func(t *testing.T) { testHiddenLease(t, open(t)) })
	t.Run("a lease is purged after its reservations", func(t *testing.T) { testLeasePurge(t, open(t)) })
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
	maintenance := booked("maintenance")
	maintenance.Maintenance = true
	mustCreate(t, s, maintenance)
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
		{reservation.LeaseQuery{Name: "course", Marker: "first"}, []string{"foreign", "last"}},
		{reservation.LeaseQuery{Name: "course", Limit: 1}, []string{"first"}},
		{reservation.LeaseQuery{Name: "Course"}, nil},
		{reservation.LeaseQuery{ID: "own"}, []string{"own"}},
		{reservation.LeaseQuery{Stored: true}, []string{"first", "foreign", "last"}},
		{reservation.LeaseQuery{Stored: true, ProjectID: "demo", Limit: 1, Marker: "first"}, []string{"last"}},
		{reservation.LeaseQuery{Stored: true, Name: "course", ProjectID: "demo"}, []string{"first", "last"}},
		{reservation.LeaseQuery{ID: "foreign", ProjectID: "demo"}, nil},
		{reservation.LeaseQuery{ID: "gone"}, nil},
		{reservation.LeaseQuery{ID: "maintenance"}, nil},
	} {
		list, err := listed(t, reader, c.q)
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
	if _, err := listed(t, reader, reservation.LeaseQuery{ProjectID: "demo", Marker: "foreign"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a marker of another project: %v, want Invalid", err)
	}
}

// listed returns the leases that q selects, in the order of their states, which must be those of the
// leases.
func listed(t *testing.T, r reservation.LeaseReader, q reservation.LeaseQuery) (list []reservation.LeaseRecord, err error) {
	t.Helper()
	states, err := r.LeaseStates(t.Context(), q)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(states))
	for i, state := range states {
		ids[i] = state.ID
	}
	list, err = r.LeasesOf(t.Context(), append(ids, "nobody"))
	slices.SortFunc(list, func(a, b reservation.LeaseRecord) int {
		return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID))
	})
	got := make([]reservation.LeaseState, len(list))
	for i := range list {
		got[i] = list[i].State()
	}
	if d := diff(states, got); d != "" {
		t.Errorf("states of the leases (-listed +read):\n%s", d)
	}
	return list, err
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

func testChangeTogether(t *testing.T, s Subject) {
	l := leaseAt("lease", 0)
	one, two := memberOf(l, "one"), memberOf(l, "two")
	mustCommitLease(t, s, l, one, two)
	later := func(r *booking.Revision) {
		r.Reservation.Version, r.Reservation.Span, r.Cause.Action = 2, l.Span, reservation.ActionModify
		r.Reservation.Membership.Max = 5
	}
	l.Version, l.Span.End = 2, l.Span.End.Add(600)
	later(&one)
	later(&two)
	stale := two
	stale.Reservation.Version = 3
	if err := commitLease(t, s, l, one, stale); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a change with a stale part: %v, want ErrStale", err)
	}
	if got, err := s.Get(t.Context(), "one"); err != nil || got.Version != 1 {
		t.Errorf("the other part of a stale change has version %d: %v", got.Version, err)
	}
	mustCommitLease(t, s, l, two, one)
	wantLease(t, s, reservation.LeaseRecord{Lease: l, Reservations: []reservation.Reservation{one.Reservation, two.Reservation}})
	got, err := s.Recall(t.Context(), booking.Recall{Known: func(string) int64 { return 1 }})
	if err != nil || len(got.Reservations) != 2 {
		t.Errorf("another replica reads %d changed reservations, want both: %v", len(got.Reservations), err)
	}
}

func testHiddenLease(t *testing.T, s Subject) {
	reader := offered[reservation.LeaseReader](t, s)
	r := booked("own")
	r.Status = reservation.Ended
	mustCreate(t, s, r)
	canceled := booked("canceled")
	canceled.Status = reservation.Canceled
	mustCreate(t, s, canceled)
	waiting := booked("waiting")
	waiting.Status, waiting.Claims = reservation.Waiting, nil
	mustCreate(t, s, waiting)
	wantLease(t, s, reservation.OwnLease(r))
	hidden := reservation.OwnLease(r).Lease
	hidden.Version, hidden.Deleted = 1, r.Updated
	mustCommitLease(t, s, hidden)
	for _, id := range []string{r.ID, canceled.ID, waiting.ID} {
		if _, err := reader.Lease(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want NotFound", id, err)
		}
	}
	if list, err := listed(t, reader, reservation.LeaseQuery{}); err != nil || len(list) != 0 {
		t.Errorf("the leases are %+v: %v", list, err)
	}
	wantStored(t, s, r)
	if err := commitLease(t, s, hidden); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("hidden twice: %v, want ErrStale", err)
	}
}

func testLeasePurge(t *testing.T, s Subject) {
	p, out := offered[purger](t, s), offered[outbox](t, s)
	at := leaseAt("", 0).Span.End
	purge := func(before span.Instant) {
		t.Helper()
		if _, err := p.Purge(t.Context(), job.Lease{}, before, false, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	full, empty, deleted := leaseAt("full", 0), leaseAt("empty", 0), leaseAt("deleted", 100)
	member := memberOf(full, "member")
	member.Reservation.Status = reservation.Ended
	deleted.Deleted = deleted.Updated
	for _, l := range []reservation.Lease{empty, deleted} {
		mustCommitLease(t, s, l)
	}
	mustCommitLease(t, s, full, member)
	own := booked("own")
	own.Status = reservation.Ended
	mustCreate(t, s, own)
	hidden := reservation.OwnLease(own).Lease
	hidden.Version, hidden.Deleted = 1, own.Updated
	mustCommitLease(t, s, hidden)

	// A commit of the second version fails if the first was purged.
	kept := func(l reservation.Lease) bool {
		t.Helper()
		l.Version++
		err := commitLease(t, s, l)
		if err != nil && !errors.Is(err, reservation.ErrStale) {
			t.Fatal(err)
		}
		return err == nil
	}
	purge(at)
	for _, l := range []reservation.Lease{full, empty, hidden} {
		if !kept(l) {
			t.Errorf("lease %s is purged, although it lasts or has a reservation", l.ID)
		}
	}
	if kept(deleted) {
		t.Error("a deleted lease without reservations is kept")
	}
	list, err := out.Unsent(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
			t.Fatal(err)
		}
	}
	purge(at + 1)
	for _, l := range []reservation.Lease{full, empty, hidden} {
		l.Version = 2
		if kept(l) {
			t.Errorf("lease %s is kept, although it is over and has no reservation", l.ID)
		}
	}
}
