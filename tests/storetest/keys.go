// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func testKeys(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a key is remembered with its reservation", func(t *testing.T) {
		s := open(t)
		want := reservation.Key{ProjectID: "demo", Key: "k", BodyHash: "b1946ac9", ReservationID: "r", Created: 1_799_000_000}
		if err := create(t, s, booked("r"), &want); err != nil {
			t.Fatal(err)
		}
		got, ok, err := s.Key(t.Context(), "demo", "k")
		if err != nil || !ok {
			t.Fatalf("the key is not known (%v): %v", ok, err)
		}
		if d := diff(want, got); d != "" {
			t.Errorf("key (-want +got):\n%s", d)
		}
	})
	t.Run("keys are apart by project and in every letter", func(t *testing.T) {
		s := open(t)
		for _, use := range []reservation.Key{
			{ProjectID: "demo", Key: "k"}, {ProjectID: "other", Key: "k"}, {ProjectID: "Demo", Key: "k"},
			{ProjectID: "demo", Key: "K"}, {ProjectID: "demo", Key: "k "}, {ProjectID: "demo", Key: "ḱ"},
		} {
			use.ReservationID = use.ProjectID + "/" + use.Key
			if err := create(t, s, booked(use.ReservationID), &use); err != nil {
				t.Errorf("key %q of project %q: %v", use.Key, use.ProjectID, err)
			}
			if got, _, err := s.Key(t.Context(), use.ProjectID, use.Key); err != nil || got != use {
				t.Errorf("key %q of project %q is %v, %v", use.Key, use.ProjectID, got, err)
			}
		}
		if _, ok, err := s.Key(t.Context(), "demo", "unused"); ok || err != nil {
			t.Errorf("an unused key is known (%v): %v", ok, err)
		}
	})
	t.Run("keys are purged by age and may be used again", func(t *testing.T) {
		s := open(t)
		offered[keyPurger](t, s)
		for id, created := range map[string]span.Instant{"old": 99, "new": 100} {
			if err := create(t, s, booked(id), &reservation.Key{ProjectID: "demo", Key: id, Created: created}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := offered[keyPurger](t, s).PurgeKeys(t.Context(), job.Lease{}, 100); n != 1 || err != nil {
			t.Fatalf("purged %d, %v; want the old one", n, err)
		}
		if err := create(t, s, booked("again"), &reservation.Key{ProjectID: "demo", Key: "old"}); err != nil {
			t.Errorf("the purged key: %v", err)
		}
		if err := create(t, s, booked("twice"), &reservation.Key{ProjectID: "demo", Key: "new"}); !errors.Is(err, reservation.ErrKeyUsed) {
			t.Errorf("the kept key: %v, want ErrKeyUsed", err)
		}
		for _, id := range []string{"old", "new", "again"} {
			wantStored(t, s, booked(id))
		}
	})
}
