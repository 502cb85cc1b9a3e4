// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

// guestbook implements inventory.InstanceRecords; a nil guestbook fails.
type guestbook map[string]inventory.InstanceRecord

func (g guestbook) InstanceRecords(context.Context, ...string) (map[string]inventory.InstanceRecord, error) {
	if g == nil {
		return nil, errors.New("the database is away")
	}
	return g, nil
}

func TestWhoWasPlacedByAHintIsKnownInEveryReading(t *testing.T) {
	marked := inventory.Flavor{ExtraSpecs: map[string]string{inventory.ReservationMark: "r2"}}
	c := &cloud{hosts: racked("a"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
	read := []inventory.Instance{
		{ID: "hinted"}, {ID: "marked", Flavor: marked}, {ID: "spot"}, {ID: "preemptible", Preemptible: true},
		{ID: "stranger", Hints: map[string][]string{"reservation": {"r1"}}},
	}
	c.hosts[0].Instances = read
	o, book := settings(c), guestbook{
		"hinted": {Reservation: "r1"}, "marked": {Reservation: "r1"}, "spot": {Preemptible: true}, "preemptible": {Reservation: "r1"},
	}
	o.Records = &book
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	type known struct {
		reservation string
		preemptible bool
	}
	want := map[string]known{"hinted": {"r1", false}, "marked": {"r2", false}, "spot": {"", true}, "preemptible": {"r1", true}, "stranger": {}}
	check := func(when string) {
		t.Helper()
		for _, i := range k.Snapshot().Host(0).Instances {
			if got := (known{i.ReservationID(), i.Preemptible}); got != want[i.ID] {
				t.Errorf("%s: instance %s has %v, want %v", when, i.ID, got, want[i.ID])
			}
		}
	}
	check("at first")
	if read[0].Reservation != "" {
		t.Error("the source's own hosts have changed")
	}

	before := book
	book = nil
	if err := k.Refresh(t.Context()); err == nil {
		t.Error("an unreachable database is no error")
	}
	check("while the database is away")

	book, want["stranger"] = before, known{"r3", false}
	book["stranger"] = inventory.InstanceRecord{Reservation: "r3"}
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after one more was placed, and the hosts are the same")
}
