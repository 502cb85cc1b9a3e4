// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func testInstanceRecords(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last placement of an instance is stored", func(t *testing.T) { testRemembered(t, open(t)) })
	t.Run("many are placed and recognized at once", func(t *testing.T) { testManyInstanceRecords(t, open(t)) })
	t.Run("instances that were requested again are kept", func(t *testing.T) { testForgotten(t, open(t)) })
}

// remember stores a record for instances.
func remember(t *testing.T, s instanceRecords, g inventory.InstanceRecord, at span.Instant, instances ...string) {
	t.Helper()
	if err := s.SaveInstanceRecords(t.Context(), instances, g, at); err != nil {
		t.Fatalf("remember %v: %v", instances, err)
	}
}

// wantRecords fails unless the stored records of the instances, or of all if none are named, are
// the wanted ones.
func wantRecords(t *testing.T, s instanceRecords, want map[string]inventory.InstanceRecord, instances ...string) {
	t.Helper()
	got, err := s.InstanceRecords(t.Context(), instances...)
	if err != nil {
		t.Fatalf("instance records: %v", err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("records among %v (-want +got):\n%s", instances, d)
	}
}

func testRemembered(t *testing.T, subject Subject) {
	s := offered[instanceRecords](t, subject)
	wantRecords(t, s, map[string]inventory.InstanceRecord{})
	r1, r2, spot := inventory.InstanceRecord{Reservation: "r1", Preemptible: true}, inventory.InstanceRecord{Reservation: "r2"}, inventory.InstanceRecord{Preemptible: true}
	remember(t, s, r1, 10, "a", "b")
	remember(t, s, spot, 20, "c")
	remember(t, s, r2, 20, "b", "A")
	all := map[string]inventory.InstanceRecord{"a": r1, "b": r2, "c": spot, "A": r2}
	wantRecords(t, s, all)
	wantRecords(t, s, map[string]inventory.InstanceRecord{"b": r2, "c": spot}, "b", "c", "d")
	wantRecords(t, s, map[string]inventory.InstanceRecord{}, "d")
}

func testManyInstanceRecords(t *testing.T, subject Subject) {
	s, id := offered[instanceRecords](t, subject), numbered("i")
	g, want := inventory.InstanceRecord{Reservation: "r"}, map[string]inventory.InstanceRecord{}
	var ids []string
	for range 2500 {
		ids = append(ids, id())
		want[ids[len(ids)-1]] = g
	}
	remember(t, s, g, 10, ids...)
	remember(t, s, g, 10, "another")
	wantRecords(t, s, want, ids...)
}

func testForgotten(t *testing.T, subject Subject) {
	s := offered[instanceRecords](t, subject)
	g := inventory.InstanceRecord{Reservation: "r"}
	remember(t, s, g, 98, "again", "old")
	remember(t, s, g, 97, "gone")
	remember(t, s, g, 100, "young", "again")
	old, err := s.OldInstanceRecords(t.Context(), 100)
	if d := diff([]string{"gone", "old"}, old); d != "" || err != nil {
		t.Errorf("old are (-want +got):\n%s\n%v", d, err)
	}
	if err := s.ForgetInstanceRecords(t.Context(), job.Lease{}, []string{"gone", "again", "unknown"}, 100); err != nil {
		t.Errorf("forget: %v", err)
	}
	wantRecords(t, s, map[string]inventory.InstanceRecord{"old": g, "young": g, "again": g})
}
