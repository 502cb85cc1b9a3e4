// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"io"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
)

func testReopening(t *testing.T, open func(t *testing.T) Subject) {
	s := open(t)
	set := offered[settings](t, s)
	use := reservation.Key{ProjectID: "demo", Key: "k", ReservationID: "kept"}
	if err := create(t, s, booked("kept"), &use); err != nil {
		t.Fatal(err)
	}
	err := set.ChangeOverride(t.Context(), "node-1", func(map[string]inventory.Override) (inventory.Override, error) {
		return inventory.Override{Reservable: new(false), Power: new(inventory.PowerSleeping)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.SaveHidden(t.Context(), "gpu", true); err != nil {
		t.Fatal(err)
	}
	if err := offered[io.Closer](t, s).Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t)
	set = offered[settings](t, s)
	wantStored(t, s, booked("kept"))
	if got, ok, err := s.Key(t.Context(), "demo", "k"); !ok || err != nil || got != use {
		t.Errorf("the key is %v (%v): %v", got, ok, err)
	}
	want := map[string]inventory.Override{"node-1": {Reservable: new(false), Power: new(inventory.PowerSleeping)}}
	if got, err := set.Overrides(t.Context()); err != nil || diff(want, got) != "" {
		t.Errorf("overrides are %v: %v", got, err)
	}
	if got, err := set.Hidden(t.Context()); err != nil || !got["gpu"] {
		t.Errorf("hidden are %v: %v", got, err)
	}
}
