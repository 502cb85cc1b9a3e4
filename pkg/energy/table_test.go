// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

func TestOfATableTheFirstRowThatFitsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SampledFrom([]string{"a1", "a2", "b1", "a*", "?1", "a[1-2]", `\a1`, "*"}), 0, 6).Draw(t, "rows")
		text := "host,flops_per_watt\n"
		for i, row := range rows {
			text += fmt.Sprintf("%s,%d\n", row, i+1)
		}
		table, err := energy.ReadTable(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"a1", "a2", "b1", "c3"} {
			want := 0.0
			for i, row := range rows {
				if fits, _ := path.Match(row, host); fits {
					want = float64(i + 1)
					break
				}
			}
			if got := table.Of(host).FlopsPerWatt; got != want {
				t.Errorf("of %q host %s has row %v, want %v", rows, host, got, want)
			}
		}
	})
}

func TestFindingAHostInATableTakesNoLongerWhereItIsLong(t *testing.T) {
	short, long := finding(t, 100), finding(t, 10_000)
	if long > 20*short {
		t.Errorf("it took %v to find 10,000 times one of 10,000 hosts, and %v one of 100", long, short)
	}
}

// finding returns how long 10,000 searches in a table of this many hosts take: the best of some
// runs, because other work on the machine slows each of them.
func finding(t *testing.T, hosts int) (best time.Duration) {
	t.Helper()
	var text strings.Builder
	text.WriteString("host,flops_per_watt\n")
	for i := range hosts {
		fmt.Fprintf(&text, "node-%d,%d\n", i, i)
	}
	table, err := energy.ReadTable(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		begun := time.Now()
		for n := range 10_000 {
			if got := table.Of(fmt.Sprint("node-", n%hosts)).FlopsPerWatt; got != float64(n%hosts) {
				t.Fatalf("host %d has %v", n%hosts, got)
			}
		}
		best = min(cmp.Or(best, time.Hour), time.Since(begun))
	}
	return best
}
