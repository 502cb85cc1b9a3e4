// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testChanges(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a change tells who did what", func(t *testing.T) { testTrail(t, open(t)) })
	t.Run("the log has an end, which moves on with each change", func(t *testing.T) { testLastChange(t, open(t)) })
	t.Run("a change waits until it is sent", func(t *testing.T) { testOutbox(t, open(t)) })
}

func testTrail(t *testing.T, s Subject) {
	audit := offered[auditor](t, s)
	r := booked("r")
	r.Resources.Custom = map[string]int64{"CUSTOM_GPU": 2}
	var want []reservation.Change
	for _, cause := range []reservation.Cause{
		{Action: reservation.ActionCreate, UserID: "ada", RequestID: "req-1"},
		{Action: reservation.ActionModify, UserID: "grace", RequestID: "req-2", Detail: "one host more"},
		{Action: reservation.ActionStart},
	} {
		r.Name, r.Updated = cause.RequestID, 1_799_000_000+span.Instant(r.Version)
		if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r, Cause: cause}}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, reservation.Change{At: r.Updated, Cause: cause, Reservation: r})
		r.Version++
	}
	mustCreate(t, s, booked("another"))
	for _, limit := range []int{0, 2} {
		got, err := audit.Trail(t.Context(), "r", limit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			got[i].Place = 0
		}
		if limit > 0 {
			want = want[:limit]
		}
		if d := diff(want, got); d != "" {
			t.Errorf("trail of at most %d (-want +got):\n%s", limit, d)
		}
	}
}

// ending tells where the change log ends.
type ending interface {
	LastChange(ctx context.Context) (int64, error)
}

func testLastChange(t *testing.T, s Subject) {
	log := offered[ending](t, s)
	last := int64(-1)
	for _, id := range []string{"", "a", "b"} {
		if id != "" {
			mustCreate(t, s, booked(id))
		}
		place, err := log.LastChange(t.Context())
		if err != nil || place <= last || id == "" && place != 0 {
			t.Errorf("after %q the log ends at %d, and ended at %d (%v)", id, place, last, err)
		}
		last = place
	}
}

func testOutbox(t *testing.T, s Subject) {
	out := offered[outbox](t, s)
	waiting := func(want int, wantFirst span.Instant) {
		t.Helper()
		if count, first, err := out.Waiting(t.Context()); count != want || first != wantFirst || err != nil {
			t.Errorf("%d wait since %d (%v), want %d since %d", count, first, err, want, wantFirst)
		}
	}
	waiting(0, 0)
	for n := range 5 {
		r := booked(fmt.Sprint(n))
		r.Updated = 1_799_000_000 + span.Instant(n)
		mustCreate(t, s, r)
	}
	waiting(5, 1_799_000_000)
	unsent := func(limit int) (places []int64, ids []string) {
		t.Helper()
		list, err := out.Unsent(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			places, ids = append(places, c.Place), append(ids, c.Reservation.ID)
		}
		return places, ids
	}
	places, names := unsent(3)
	if d := diff([]string{"0", "1", "2"}, names); d != "" {
		t.Errorf("first page (-want +got):\n%s", d)
	}
	if err := out.MarkSent(t.Context(), job.Lease{}, places[:2]); err != nil {
		t.Fatal(err)
	}
	if _, names = unsent(0); diff([]string{"2", "3", "4"}, names) != "" {
		t.Errorf("unsent are %v, want 2, 3, 4", names)
	}
	waiting(3, 1_799_000_002)
}

func testPurging(t *testing.T, open func(t *testing.T) Subject) {
	s := open(t)
	p, out := offered[purger](t, s), offered[outbox](t, s)
	const day = 86400
	for n := range 7 {
		use := reservation.Key{ProjectID: "demo", Key: fmt.Sprint(n), ReservationID: fmt.Sprint(n)}
		r := booked(fmt.Sprint(n))
		if err := create(t, s, r, &use); err != nil {
			t.Fatal(err)
		}
		r.Version, r.Updated = 2, span.Instant(n*day)
		r.Status = []reservation.Status{reservation.Ended, reservation.Canceled, reservation.Failed, reservation.Active}[n%4]
		mustUpdate(t, s, r)
	}
	// 0, 1, 2, 4, 5, 6 are over, the last two after the instant, and 1 is not sent.
	list, err := out.Unsent(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Reservation.ID != "1" {
			if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := p.Purge(t.Context(), job.Lease{}, 5*day, true, 2, nil); n != 3 || err != nil {
		t.Errorf("a dry run counts %d (%v), want 3", n, err)
	}
	var steps []int
	n, err := p.Purge(t.Context(), job.Lease{}, 5*day, false, 2, func(done int) { steps = append(steps, done) })
	if n != 3 || err != nil || diff([]int{2, 3}, steps) != "" {
		t.Errorf("purged %d in steps %v (%v), want 2 and 1", n, steps, err)
	}
	kept := mustList(t, s, reservation.Query{Statuses: reservation.Statuses})
	if d := diff([]string{"1", "3", "5", "6"}, ids(kept)); d != "" {
		t.Errorf("kept (-want +got):\n%s", d)
	}
	for n := range 7 {
		id := fmt.Sprint(n)
		_, used, err := s.Key(t.Context(), "demo", id)
		if gone := id == "0" || id == "2" || id == "4"; used == gone || err != nil {
			t.Errorf("the key of %s is used: %v (%v)", id, used, err)
		}
	}
	// 1 was canceled.
	for _, c := range list {
		if err := out.MarkSent(t.Context(), job.Lease{}, []int64{c.Place}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), "1"); err != nil {
		t.Errorf("a canceled reservation before it is purged: %v", err)
	}
	if n, err := p.Purge(t.Context(), job.Lease{}, 5*day, false, 2, nil); n != 1 || err != nil {
		t.Errorf("once it is sent %d are purged, want 1 (%v)", n, err)
	}
	if _, err := s.Get(t.Context(), "1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a canceled reservation that is purged: %v, want a not_found fault", err)
	}
	for _, r := range kept {
		if len(r.Claims) != 2 || len(r.Events) != 2 {
			t.Errorf("%s has %d claims and %d events left", r.ID, len(r.Claims), len(r.Events))
		}
	}
}
