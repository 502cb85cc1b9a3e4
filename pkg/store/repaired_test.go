// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// The test stores terms that requests may no longer contain.
func TestTermsOfAnEarlierVersionAreRepairedAsTheyAreRead(t *testing.T) {
	s := open(t, store.Options{Connection: newFile(t), BusyTimeout: 30 * time.Second, Outbox: true})
	for id, filter := range map[string]string{"r1": "[]", "r2": `"[]"`, "r3": "[ ]"} {
		stored := reservation.Reservation{ID: id, Version: 1, Terms: reservation.Terms{
			HostProperties: filter, Resources: resource.Vector{VCPUs: 1, Custom: map[string]int64{"CUSTOM_FPGA": 1, "CUSTOM_NOTHING": 0}},
		}}
		if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: stored}}}); err != nil {
			t.Fatal(err)
		}
		read, err := s.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		log, err := s.Trail(t.Context(), id, 0)
		if err != nil || len(log) != 1 {
			t.Fatalf("%d changes, %v", len(log), err)
		}
		want := reservation.Terms{Resources: resource.Vector{VCPUs: 1, Custom: map[string]int64{"CUSTOM_FPGA": 1}}}
		for where, got := range map[string]reservation.Terms{"the reservation": read.Terms, "its change": log[0].Reservation.Terms} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with filter %s (-want +got):\n%s", where, filter, diff)
			}
		}
	}
}
