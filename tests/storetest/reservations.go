// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testReservations(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("what is created is read back exactly", func(t *testing.T) {
		s, id := open(t), numbered("r")
		rapid.Check(t, func(rt *rapid.T) {
			want := anyReservation(id()).Draw(rt, "reservation")
			mustCreate(rt, s, want)
			wantStored(rt, s, want)
		})
	})
	t.Run("an update replaces everything", func(t *testing.T) {
		s, id := open(t), numbered("r")
		rapid.Check(t, func(rt *rapid.T) {
			next := id()
			was := anyReservation(next).Draw(rt, "before")
			mustCreate(rt, s, was)
			want := anyReservation(next).Draw(rt, "after")
			want.Claims = spliced(rt, was.Claims, want.Claims)
			want.Events = spliced(rt, was.Events, want.Events)
			want.Version = 2
			mustUpdate(rt, s, want)
			wantStored(rt, s, want)
		})
	})
	t.Run("a filter may be as long as a request", func(t *testing.T) {
		s, want := open(t), booked("r")
		want.HostProperties = strings.Repeat("ä", 1<<19)
		mustCreate(t, s, want)
		wantStored(t, s, want)
	})
	t.Run("a reservation may hold many hosts", func(t *testing.T) {
		s, want := open(t), booked("r")
		for n := range 10_000 {
			want.Claims = append(want.Claims, reservation.Claim{Host: fmt.Sprint(n), Span: want.Span})
		}
		mustCreate(t, s, want)
		wantStored(t, s, want)
	})
	t.Run("the largest filter fits beside many hosts", func(t *testing.T) {
		s, want := open(t), booked("r")
		want.HostProperties = strings.Repeat(`"`, 1<<20) // the longest text when it is quoted
		for n := range 10_000 {
			want.Claims = append(want.Claims, reservation.Claim{Host: fmt.Sprintf("%060d", n), Span: want.Span})
		}
		mustCreate(t, s, want)
		want.Name, want.Version = "changed", 2
		mustUpdate(t, s, want)
		wantStored(t, s, want)
	})
	t.Run("what is not there is not found", func(t *testing.T) {
		if _, err := open(t).Get(t.Context(), "r"); !fault.Is(err, fault.NotFound) {
			t.Errorf("got %v, want a not_found fault", err)
		}
	})
	t.Run("an id is the same in every letter only", func(t *testing.T) {
		s := open(t)
		mustCreate(t, s, booked("r"))
		for _, id := range []string{"R", "r ", "ŕ"} {
			if _, err := s.Get(t.Context(), id); !fault.Is(err, fault.NotFound) {
				t.Errorf("get %q: %v, want a not_found fault", id, err)
			}
		}
	})
	t.Run("a stale update is a conflict and changes nothing", func(t *testing.T) { testStaleUpdate(t, open(t)) })
	t.Run("a failed create leaves nothing", func(t *testing.T) { testFailedCreate(t, open(t)) })
	t.Run("a canceled call leaves nothing", func(t *testing.T) { testCanceledCall(t, open(t)) })
	t.Run("live are those that wait or hold claims", func(t *testing.T) { testLive(t, open(t)) })
	t.Run("a canceled reservation is found, and listed on request", func(t *testing.T) { testCanceled(t, open(t)) })
}

// spliced returns next between parts of was, which is how lists change in practice.
func spliced[T any](t *rapid.T, was, next []T) []T {
	head := rapid.IntRange(0, len(was)).Draw(t, "kept at the head")
	tail := rapid.IntRange(head, len(was)).Draw(t, "kept from")
	return slices.Concat(was[:head], next, was[tail:])
}

func testStaleUpdate(t *testing.T, s Subject) {
	stored := booked("r")
	mustCreate(t, s, stored)
	stored.Version, stored.Name = 2, "changed"
	mustUpdate(t, s, stored)
	for _, version := range []int64{1, 2, 4} {
		stale := booked("r")
		stale.Name, stale.Claims, stale.Version = "stale", nil, version
		if err := update(t, s, stale); !errors.Is(err, reservation.ErrStale) {
			t.Errorf("update to version %d: %v, want ErrStale", version, err)
		}
	}
	nobody := booked("nobody")
	nobody.Version = 2
	if err := update(t, s, nobody); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("update of what is not there: %v, want ErrStale", err)
	}
	wantStored(t, s, stored)
	if list := mustList(t, s, reservation.Query{}); len(list) != 1 {
		t.Errorf("stored are %v, want r alone", ids(list))
	}
}

func testFailedCreate(t *testing.T, s Subject) {
	first, use := booked("first"), reservation.Key{ProjectID: "demo", Key: "k", ReservationID: "first"}
	if err := create(t, s, first, &use); err != nil {
		t.Fatal(err)
	}
	if err := create(t, s, booked("second"), &use); !errors.Is(err, reservation.ErrKeyUsed) {
		t.Errorf("a used key: %v, want ErrKeyUsed", err)
	}
	if err := create(t, s, booked("first"), &reservation.Key{ProjectID: "demo", Key: "fresh"}); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a used id with a fresh key: %v, want ErrStale", err)
	}
	if _, ok, err := s.Key(t.Context(), "demo", "fresh"); ok || err != nil {
		t.Errorf("the fresh key is remembered (%v) without its reservation (%v)", ok, err)
	}
	if list := mustList(t, s, reservation.Query{}); diff([]reservation.Reservation{first}, list) != "" {
		t.Errorf("stored is not the first alone: %v", list)
	}
}

func testCanceledCall(t *testing.T, s Subject) {
	offered[io.Closer](t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Commit(ctx, booking.Commit{Revisions: []booking.Revision{{Reservation: booked("r")}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v, want context.Canceled", err)
	}
	if _, err := s.Get(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v, want context.Canceled", err)
	}
	if list := mustList(t, s, reservation.Query{}); len(list) != 0 {
		t.Errorf("stored are %v, want none", ids(list))
	}
}

func testLive(t *testing.T, s Subject) {
	var want []reservation.Reservation
	for _, status := range reservation.Statuses {
		r := booked(string(status))
		r.Status = status
		mustCreate(t, s, r)
		switch status {
		case reservation.Waiting, reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending:
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b reservation.Reservation) int { return strings.Compare(a.ID, b.ID) })
	got, err := s.Recall(t.Context(), booking.Recall{All: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, got.Reservations); d != "" {
		t.Errorf("live reservations (-want +got):\n%s", d)
	}
}

func testCanceled(t *testing.T, s Subject) {
	r := booked("r")
	mustCreate(t, s, r)
	r.Status, r.Version = reservation.Canceled, 2
	mustUpdate(t, s, r)
	wantStored(t, s, r)
	if list := mustList(t, s, reservation.Query{}); len(list) != 0 {
		t.Errorf("listed without a request for it: %v", ids(list))
	}
	list := mustList(t, s, reservation.Query{Statuses: []reservation.Status{reservation.Canceled}})
	if d := diff([]reservation.Reservation{r}, list); d != "" {
		t.Errorf("canceled reservations (-want +got):\n%s", d)
	}
}

// reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Context() context.Context
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// create stores a new reservation.
func create(t reporter, s Subject, r reservation.Reservation, key *reservation.Key) error {
	return s.Commit(t.Context(), booking.Commit{
		Revisions: []booking.Revision{{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate, UserID: r.UserID}}}, Key: key,
	})
}

// update stores the next version of a reservation.
func update(t reporter, s Subject, r reservation.Reservation) error {
	return s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionModify, UserID: r.UserID}}}})
}

func mustCreate(t reporter, s Subject, r reservation.Reservation) {
	t.Helper()
	if err := create(t, s, r, nil); err != nil {
		t.Fatalf("create %s: %v", r.ID, err)
	}
}

func mustUpdate(t reporter, s Subject, r reservation.Reservation) {
	t.Helper()
	if err := update(t, s, r); err != nil {
		t.Fatalf("update %s: %v", r.ID, err)
	}
}

func mustList(t reporter, s Subject, q reservation.Query) []reservation.Reservation {
	t.Helper()
	list, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatalf("list %+v: %v", q, err)
	}
	return list
}

func wantStored(t reporter, s Subject, want reservation.Reservation) {
	t.Helper()
	got, err := s.Get(t.Context(), want.ID)
	if err != nil {
		t.Fatalf("get %s: %v", want.ID, err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("reservation %s (-want +got):\n%s", want.ID, d)
	}
}
