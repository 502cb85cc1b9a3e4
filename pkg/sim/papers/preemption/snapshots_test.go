// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func TestA001_1_to_4_TheSnapshotsComeOutAsInThePaper(t *testing.T) {
	tables, err := recompute()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tables {
		if !f.agrees() {
			t.Errorf("%s: %v for %v minutes, want %v for %v", f.name, f.ours, f.minutes, f.paper, f.costs)
		}
	}
}

func TestA001_5_TheWeighersAsPrintedAndByCountChooseOthers(t *testing.T) {
	tables, err := recompute()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][2]victims{
		2: {{"host-B", "BP1"}, {"host-B", "BP1"}},
		3: {{"host-A", "AP1"}, {"host-A", "AP1"}},
	} {
		if f := tables[n]; f.period != want[0] || f.count != want[1] {
			t.Errorf("%s: %v as printed, %v by count, want %v", f.name, f.period, f.count, want)
		}
	}
	for _, f := range tables[:2] {
		if f.period != f.paper {
			t.Errorf("%s: %v as printed, want %v as in the paper", f.name, f.period, f.paper)
		}
	}
}

// The examples of `almanac whatif schedule` contain the same tables.
func TestTheSnapshotsAreTheExamples(t *testing.T) {
	for n, name := range []string{"schedule", "schedule-age", "schedule-sizes", "schedule-free"} {
		s := snapshots[n]
		q, err := s.question(0, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile("../../../../docs/examples/whatif/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want whatif.ScheduleQuestion
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Hosts, q.Hosts); diff != "" {
			t.Errorf("%s (-example +ours):\n%s", s.name, diff)
		}
		if diff := cmp.Diff(*want.Request.Resources, *q.Request.Resources); diff != "" {
			t.Errorf("%s (-example +ours):\n%s", s.name, diff)
		}
	}
}
