// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
)

func testTold(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last word about a lease stays until it is deleted", func(t *testing.T) { testLastWord(t, open(t)) })
	t.Run("a lease has ended without a live reservation", func(t *testing.T) { testEnded(t, open(t)) })
}

// ended returns what the store has of leases that have ended.
func ended(t *testing.T, s enforcement.Records, now, before span.Instant, limit int) []enforcement.Told {
	t.Helper()
	list, err := s.Ended(t.Context(), now, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func tellOf(t *testing.T, s enforcement.Records, told ...enforcement.Told) {
	t.Helper()
	for _, one := range told {
		if err := s.Tell(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
}

func testLastWord(t *testing.T, subject Subject) {
	s := offered[enforcement.Records](t, subject)
	a := enforcement.Told{LeaseID: "a", Request: []byte(`{"lease":1}`), AskedAt: 100, Withdrawn: true, Tries: 2, Next: 300}
	b := enforcement.Told{LeaseID: "b", Request: []byte(`{}`), AskedAt: 100}
	tellOf(t, s, enforcement.Told{LeaseID: "a", Request: []byte(`{}`), AskedAt: 50}, a, b)
	if d := diff([]enforcement.Told{b, a}, ended(t, s, 300, 101, 10)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := diff([]enforcement.Told{b}, ended(t, s, 300, 101, 1)); d != "" {
		t.Errorf("the first one, -want +got:\n%s", d)
	}
	if d := diff([]enforcement.Told{b}, ended(t, s, 299, 101, 10)); d != "" {
		t.Errorf("before the next try of a, -want +got:\n%s", d)
	}
	for range 2 {
		if err := s.Forget(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
	}
	if d := diff([]enforcement.Told{a}, ended(t, s, 300, 100, 10)); d != "" {
		t.Errorf("after b was deleted, -want +got:\n%s", d)
	}
}

func testEnded(t *testing.T, subject Subject) {
	s := offered[enforcement.Records](t, subject)
	for id, c := range map[string]struct {
		own      reservation.Status
		members  []reservation.Status
		told     enforcement.Told
		hasEnded bool
	}{
		"own, pending":         {own: reservation.Pending, told: enforcement.Told{Withdrawn: true}},
		"own, canceled":        {own: reservation.Canceled, told: enforcement.Told{AskedAt: 100}, hasEnded: true},
		"own, failed":          {own: reservation.Failed, told: enforcement.Told{AskedAt: 100}, hasEnded: true},
		"one of two is ending": {members: []reservation.Status{reservation.Ended, reservation.Ending}},
		"both have ended":      {members: []reservation.Status{reservation.Ended, reservation.Ended}, told: enforcement.Told{AskedAt: 100}, hasEnded: true},
		"not stored yet":       {told: enforcement.Told{AskedAt: 100}},
		"never stored":         {told: enforcement.Told{AskedAt: 99}, hasEnded: true},
		"withdrawn":            {told: enforcement.Told{AskedAt: 100, Withdrawn: true}, hasEnded: true},
	} {
		t.Run(id, func(t *testing.T) {
			store := func(id, lease string, status reservation.Status) {
				r := booked(id)
				r.Status, r.Membership.LeaseID, r.Claims = status, lease, nil
				c := booking.Commit{Revisions: []booking.Revision{{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate}}}}
				if err := subject.Commit(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			lease := "lease " + id
			if c.own != "" {
				store(lease, "", c.own)
			}
			for i, status := range c.members {
				store(id+string(rune('a'+i)), lease, status)
			}
			c.told.LeaseID, c.told.Request = lease, []byte(`{}`)
			tellOf(t, s, c.told)
			if got := len(ended(t, s, 1000, 100, 10)) == 1; got != c.hasEnded {
				t.Errorf("it has ended: %v, want %v", got, c.hasEnded)
			}
			if err := s.Forget(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
		})
	}
}
