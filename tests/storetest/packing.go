// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

type packingRuns interface {
	rebalance.Records
	rebalance.Archive
}

// packingRun returns a run with every stored field.
func packingRun(id string) rebalance.Run {
	return rebalance.Run{
		ID: id, By: "u", Status: rebalance.RunActive, Reason: "because", Created: 5, Yield: 0.75,
		Plan: rebalance.Plan{
			At: 4, ID: "abc", Options: rebalance.Options{Migrations: 3, MemoryMB: 1 << 40, Algorithm: "adapt", Consolidate: 2, Floor: 0.5, Gain: 0.01},
			Algorithm: "exact", Hosts: 8, Instances: 9, Movable: 7, Measured: 6, Before: 0.5, After: 1, Bound: 1,
			Moves: []rebalance.Move{{
				Instance: "i", Name: "n", ProjectID: "p", From: "a", To: "b", VCPUs: 2, MemoryMB: 512, Need: 1.5, Yield: 0.75, Between: true,
			}},
			Emptied: []string{"a"}, Kept: []rebalance.Stay{{Host: "c", Reason: "reserved"}}, Stays: []rebalance.Stay{{Instance: "x", Host: "d", Reason: "locked"}},
			Excluded: []rebalance.Excluded{{Host: "e", Yield: 0.25, Reason: "stuck"}}, Reasons: []string{"so"},
		},
		Progress: []rebalance.Progress{{State: rebalance.MoveUnderway, Reason: "r", Begun: 6, Aborted: 8, Ended: 9, Before: "m", Told: 2}},
	}
}

func testPacking(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a run is read as it was stored", func(t *testing.T) { testPackingKept(t, open(t)) })
	t.Run("while one is not over there is no other", func(t *testing.T) { testPackingAlone(t, open(t)) })
	t.Run("it changes under the lease, whole or not at all", func(t *testing.T) { testPackingChanges(t, open(t)) })
}

func testPackingKept(t *testing.T, subject Subject) {
	s := offered[packingRuns](t, subject)
	if list, err := s.PackingRuns(t.Context(), 5); err != nil || len(list) != 0 {
		t.Fatalf("at first there are %v, %v", list, err)
	}
	want := packingRun("one")
	if err := s.AddPackingRun(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := s.PackingRun(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := s.PackingRun(t.Context(), "two"); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}

func testPackingAlone(t *testing.T, subject Subject) {
	s := offered[packingRuns](t, subject)
	add := func(id string) error { return s.AddPackingRun(t.Context(), packingRun(id)) }
	for n := range 102 {
		id := fmt.Sprint("run-", n)
		if err := add(id); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if err := add("other"); !fault.Is(err, fault.Conflict) {
				t.Errorf("beside one that runs: %v", err)
			}
		}
		_, err := s.ChangePackingRun(t.Context(), job.Lease{}, id, func(r *rebalance.Run) error {
			r.Status = rebalance.RunDone
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.PackingRuns(t.Context(), 1000)
	if err != nil || len(list) != 100 || list[0].ID != "run-101" || list[99].ID != "run-2" {
		t.Errorf("%d are kept: %v", len(list), err)
	}
}

func testPackingChanges(t *testing.T, subject Subject) {
	s, at := offered[packingRuns](t, subject), offered[leases](t, subject)
	if err := s.AddPackingRun(t.Context(), packingRun("one")); err != nil {
		t.Fatal(err)
	}
	lease, held, err := at.Take(t.Context(), "packing", time.Hour)
	if err != nil || !held {
		t.Fatal(held, err)
	}
	change := func(lease job.Lease, id string, fails error) error {
		_, err := s.ChangePackingRun(t.Context(), lease, id, func(r *rebalance.Run) error {
			r.Progress[0].State = rebalance.MoveDone
			return fails
		})
		return err
	}
	if err := change(job.Lease{Name: "packing", Epoch: lease.Epoch + 1}, "one", nil); err == nil {
		t.Error("it changes under a lease that is not held")
	}
	if err := change(lease, "two", nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if broken := errors.New("broken"); !errors.Is(change(lease, "one", broken), broken) {
		t.Error("the error of the change is lost")
	}
	if r, err := s.PackingRun(t.Context(), "one"); err != nil || r.Progress[0].State != rebalance.MoveUnderway {
		t.Errorf("it has changed: %v, %v", r.Progress, err)
	}
	if err := change(lease, "one", nil); err != nil {
		t.Error(err)
	}
	if r, err := s.PackingRun(t.Context(), "one"); err != nil || r.Progress[0].State != rebalance.MoveDone {
		t.Errorf("it has not changed: %v, %v", r.Progress, err)
	}
}
