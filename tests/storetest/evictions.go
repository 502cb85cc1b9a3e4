// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

func testEvictions(t *testing.T, create func(t *testing.T) (open func(t *testing.T) Subject)) {
	t.Run("one other replica takes over those of a stopped one", func(t *testing.T) { testEvictionsMove(t, create(t)) })
	t.Run("they end once", func(t *testing.T) { testEvictionsEnd(t, create(t)) })
}

// evicted returns an eviction with every stored field.
func evicted(id string) eviction.Record {
	of := placing.Allocations{"provider": {"VCPU": 2, "MEMORY_MB": 1 << 40}}
	return eviction.Record{
		ID: id, NoticeFor: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Preemptors: []placing.Claim{{Consumer: "new", ProjectID: "p", UserID: "u", Allocations: of}},
		Victims: []claiming.Victim{{Host: "h", Claim: placing.Claim{
			Consumer: "old", ProjectID: "q", UserID: "v", Generation: new(int64(7)), Allocations: placing.Allocations{"provider": {"VCPU": 1}}, Before: of,
		}}},
	}
}

func taken(t *testing.T, s eviction.Records, want ...eviction.Record) {
	t.Helper()
	got, err := s.TakeEvictions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("taken over (-want +got):\n%s", d)
	}
}

func testEvictionsMove(t *testing.T, open func(t *testing.T) Subject) {
	subject, other := open(t), open(t)
	one, two, at := offered[eviction.Records](t, subject), offered[eviction.Records](t, other), offered[presence](t, subject)
	if _, err := at.Present(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := one.BeginEviction(t.Context(), evicted(id)); err != nil {
			t.Fatal(err)
		}
	}
	taken(t, two)
	taken(t, one)
	if err := at.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken(t, one)
	taken(t, two, evicted("a"), evicted("b"))
	taken(t, two)
	if err := one.EndEviction(t.Context(), "a"); !fault.Is(err, fault.Conflict) {
		t.Errorf("the replica that has lost it ends it: %v", err)
	}
	if err := two.EndEviction(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func testEvictionsEnd(t *testing.T, open func(t *testing.T) Subject) {
	s := offered[eviction.Records](t, open(t))
	if err := s.BeginEviction(t.Context(), evicted("a")); err != nil {
		t.Fatal(err)
	}
	if err := s.EndEviction(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := s.EndEviction(t.Context(), "a"); !fault.Is(err, fault.Conflict) {
		t.Errorf("it ends twice: %v", err)
	}
	taken(t, offered[eviction.Records](t, open(t)))
}
