// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

func TestVerdictsHaveOneVocabulary(t *testing.T) {
	for want, v := range map[string]sim.Verdict{
		"held":                   sim.HeldIf(true),
		"**not held**":           sim.HeldIf(false),
		"**held in part**":       sim.HeldInPart,
		"undecided":              sim.Undecided,
		"not checked":            sim.NotChecked,
		"held (78 of 78)":        sim.Counted(78, 78),
		"**held in 65 of 78**":   sim.Counted(65, 78),
		"**not held** (0 of 52)": sim.Counted(0, 52),
	} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestADifferenceCountsOnlyOutsideItsInterval(t *testing.T) {
	for _, tc := range []struct {
		mean, half float64
		want       sim.Verdict
	}{
		{2, 1, sim.Held}, {1, 1, sim.Undecided}, {0, 0, sim.Undecided}, {-1, 1, sim.Undecided}, {-2, 1, sim.NotHeld},
	} {
		if got := sim.Positive(sim.Estimate{Mean: tc.mean, Half: tc.half, Runs: 5}); got != tc.want {
			t.Errorf("%v ± %v is %v, want %v", tc.mean, tc.half, got, tc.want)
		}
	}
	if got := sim.Worst(sim.Held, sim.Undecided, sim.NotHeld, sim.Held); got != sim.NotHeld {
		t.Errorf("the worst is %v", got)
	}
	if sim.Counted(1, 2).Holds() || !sim.Counted(2, 2).Holds() {
		t.Error("what held in part counts as held")
	}
	if got := sim.Worst(sim.Held, sim.Undecided); got != sim.Undecided {
		t.Errorf("the worse is %v", got)
	}
}

func TestFindingsAreATableWithTheReasonsBelow(t *testing.T) {
	list := []sim.Finding{
		{Claim: "A is more than B", Verdict: sim.Held, Seen: "3 and 2"},
		{Claim: "B is more than C.", Verdict: sim.Counted(1, 2), Seen: "2 and 1, 2 and 3", Because: "C may be drawn large."},
		{Claim: "C is 0", Verdict: sim.NotHeld, Seen: "1"},
	}
	if got := sim.CountHeld(list); got != 1 {
		t.Errorf("%d findings hold", got)
	}
	r := sim.NewReport("X")
	r.Findings("the paper", list)
	want := `# X

| the paper | here | in numbers |
|---|---|---|
| A is more than B | held | 3 and 2 |
| B is more than C. | **held in 1 of 2** | 2 and 1, 2 and 3 |
| C is 0 | **not held** | 1 |

These did not hold throughout, with a possible reason:

- B is more than C: **held in 1 of 2**. C may be drawn large.
`
	if diff := cmp.Diff(want, r.Markdown()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	list[0].Within = "by 1"
	r = sim.NewReport("X")
	r.Findings("the paper", list[:1])
	want = "# X\n\n| the paper | here | it holds if | in numbers |\n|---|---|---|---|\n| A is more than B | held | by 1 | 3 and 2 |\n"
	if diff := cmp.Diff(want, r.Markdown()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// The checked-in reports contain what Findings prints: the verdicts, and below its table a reason
// for each claim.
func TestTheReportsHaveTheVerdictsOfFindings(t *testing.T) {
	verdict := regexp.MustCompile(`^(held( \((\d+) of (\d+)\))?|\*\*held in \d+ of \d+\*\*|\*\*held in part\*\*|undecided|\*\*not held\*\*( \(0 of \d+\))?|not checked)$`)
	paths, err := filepath.Glob("../../docs/reproduction/*/report.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d reports, %v", len(paths), err)
	}
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		claims, inTable, inReasons := map[string]string{}, false, false
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			switch {
			case len(cells) > 2 && cells[1] == "here" && (cells[2] == "in numbers |" || cells[2] == "it holds if"):
				inTable, inReasons = true, false
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case inTable && len(cells) > 2:
				found++
				claims[strings.TrimSuffix(strings.TrimPrefix(cells[0], "| "), ".")] = cells[1]
				if !verdict.MatchString(cells[1]) {
					t.Errorf("%s: %q is no verdict", path, cells[1])
				}
			}
			if strings.HasPrefix(line, "These did not hold throughout") {
				inReasons = true
			}
			if item, is := strings.CutPrefix(line, "- "); is && inReasons {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(claims)), func(claim string) bool {
					return strings.HasPrefix(item, claim+": "+claims[claim]+". ")
				}) {
					t.Errorf("%s: no claim above has the reason %q", path, item)
				}
			} else if strings.HasPrefix(line, "#") {
				inReasons = false
			}
		}
	}
	if found < 80 {
		t.Errorf("%d findings in all reports", found)
	}
}
