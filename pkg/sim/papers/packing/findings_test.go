// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// counted returns all trials and the feasible ones. Its parameters are how many have no
// placement, and on how many of the others each algorithm fails.
func counted(none, mcb8, sg int) (all, feasible []trial) {
	for i := range 1440 {
		o := map[string]outcome{exact: {solved: i >= none, infeasible: i < none}, "mcb8": {solved: i >= none+mcb8}, "sg": {solved: i >= none+sg}}
		all = append(all, trial{outcomes: o})
	}
	return all, all[none:]
}

func TestTheCountsOfThePaperAreComparedWithinWhatIsSaid(t *testing.T) {
	r := &results{}
	for _, tc := range []struct {
		none, mcb8, sg int
		verdict        sim.Verdict
	}{{60, 1, 15, sim.Held}, {45, 0, 8, sim.Held}, {75, 5, 30, sim.Held}, {44, 1, 15, sim.NotHeld}, {76, 1, 15, sim.NotHeld}, {60, 6, 15, sim.NotHeld}, {60, 1, 7, sim.NotHeld}, {60, 1, 31, sim.NotHeld}} {
		f := r.unplaced(counted(tc.none, tc.mcb8, tc.sg))
		if f.Verdict != tc.verdict || !strings.Contains(f.Within, "45 to 75, at most 5, 8 to 30") {
			t.Errorf("%d, %d and %d: %s, within %s; want %s", tc.none, tc.mcb8, tc.sg, f.Verdict, f.Within, tc.verdict)
		}
	}
}

func TestEachVerdictHasWhatItIsBy(t *testing.T) {
	o := few()
	found, err := o.run(t.Context(), o.sets(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &results{Options: o, trials: found}
	list := r.findings()
	if i := slices.IndexFunc(list, func(f sim.Finding) bool { return f.Verdict != sim.NotChecked && f.Within == "" }); i >= 0 || len(list) < 20 {
		t.Errorf("of %d findings, number %d has none", len(list), i)
	}
}
