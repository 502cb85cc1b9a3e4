package energy_test

import (
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
		rows := rapid.SliceOfN(rapid.SampledFrom([]string{"a1", "a2", "b1", "a*", "?1", "[ab]2", `\a1`, "*"}), 0, 6).Draw(t, "rows")
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

func TestATableOfTenThousandHostsIsReadAtOnce(t *testing.T) {
	const hosts = 10_000
	var text strings.Builder
	text.WriteString("host,flops_per_watt\n")
	for i := range hosts {
		fmt.Fprintf(&text, "node-%d,%d\n", i, i)
	}
	table, err := energy.ReadTable(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for i := range hosts {
		if got := table.Of(fmt.Sprint("node-", i)).FlopsPerWatt; got != float64(i) {
			t.Fatalf("host %d has %v", i, got)
		}
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %v to find each of %d hosts", took, hosts)
	}
}
