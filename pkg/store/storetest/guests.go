package storetest

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func testGuests(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the last placement of an instance is stored", func(t *testing.T) { testRemembered(t, open(t)) })
	t.Run("many are placed and recognized at once", func(t *testing.T) { testManyGuests(t, open(t)) })
	t.Run("instances that were requested again are kept", func(t *testing.T) { testForgotten(t, open(t)) })
}

// remember stores a guest for instances.
func remember(t *testing.T, s guests, g inventory.InstanceRecord, at span.Instant, instances ...string) {
	t.Helper()
	if err := s.SaveInstanceRecords(t.Context(), instances, g, at); err != nil {
		t.Fatalf("remember %v: %v", instances, err)
	}
}

// wantGuests compares what is stored of instances, or of all where none is named.
func wantGuests(t *testing.T, s guests, want map[string]inventory.InstanceRecord, instances ...string) {
	t.Helper()
	got, err := s.InstanceRecords(t.Context(), instances...)
	if err != nil {
		t.Fatalf("guests: %v", err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("guests among %v (-want +got):\n%s", instances, d)
	}
}

func testRemembered(t *testing.T, subject Subject) {
	s := offered[guests](t, subject)
	wantGuests(t, s, map[string]inventory.InstanceRecord{})
	r1, r2, spot := inventory.InstanceRecord{Reservation: "r1", Preemptible: true}, inventory.InstanceRecord{Reservation: "r2"}, inventory.InstanceRecord{Preemptible: true}
	remember(t, s, r1, 10, "a", "b")
	remember(t, s, spot, 20, "c")
	remember(t, s, r2, 20, "b", "A")
	all := map[string]inventory.InstanceRecord{"a": r1, "b": r2, "c": spot, "A": r2}
	wantGuests(t, s, all)
	wantGuests(t, s, map[string]inventory.InstanceRecord{"b": r2, "c": spot}, "b", "c", "d")
	wantGuests(t, s, map[string]inventory.InstanceRecord{}, "d")
}

func testManyGuests(t *testing.T, subject Subject) {
	s, id := offered[guests](t, subject), numbered("i")
	g, want := inventory.InstanceRecord{Reservation: "r"}, map[string]inventory.InstanceRecord{}
	var ids []string
	for range 2500 {
		ids = append(ids, id())
		want[ids[len(ids)-1]] = g
	}
	remember(t, s, g, 10, ids...)
	remember(t, s, g, 10, "another")
	wantGuests(t, s, want, ids...)
}

func testForgotten(t *testing.T, subject Subject) {
	s := offered[guests](t, subject)
	g := inventory.InstanceRecord{Reservation: "r"}
	remember(t, s, g, 98, "again", "old")
	remember(t, s, g, 97, "gone")
	remember(t, s, g, 100, "young", "again")
	old, err := s.OldGuests(t.Context(), 100)
	if d := diff([]string{"gone", "old"}, old); d != "" || err != nil {
		t.Errorf("old are (-want +got):\n%s\n%v", d, err)
	}
	if err := s.ForgetGuests(t.Context(), job.Lease{}, []string{"gone", "again", "unknown"}, 100); err != nil {
		t.Errorf("forget: %v", err)
	}
	wantGuests(t, s, map[string]inventory.InstanceRecord{"old": g, "young": g, "again": g})
}
