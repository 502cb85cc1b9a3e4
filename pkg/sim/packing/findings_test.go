package packing

import (
	"slices"
	"strings"
	"testing"
)

// counted are instances of which so many have no placement, and on so many of the others two
// algorithms fail.
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
		verdict        string
	}{{60, 1, 15, held}, {45, 0, 8, held}, {75, 5, 30, held}, {44, 1, 15, broken}, {76, 1, 15, broken}, {60, 6, 15, broken}, {60, 1, 7, broken}, {60, 1, 31, broken}} {
		f := r.unplaced(counted(tc.none, tc.mcb8, tc.sg))
		if f.verdict != tc.verdict || !strings.Contains(f.within, "45 to 75, at most 5, 8 to 30") {
			t.Errorf("%d, %d and %d: %s, within %s; want %s", tc.none, tc.mcb8, tc.sg, f.verdict, f.within, tc.verdict)
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
	if i := slices.IndexFunc(list, func(f finding) bool { return f.verdict != open && f.within == "" }); i >= 0 || len(list) < 20 {
		t.Errorf("of %d findings, number %d has none", len(list), i)
	}
}
