// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/tests/growth"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// cost is the time of one path in clouds of different sizes.
type cost struct {
	path string
	took map[int]time.Duration // by the number of hosts
}

var (
	measures    = regexp.MustCompile(`growth\.Measure\(`)
	benchmarked = regexp.MustCompile(`(?m)^BenchmarkGrowth/(.+)/hosts=(\d+)(?:-\d+)?\s+\d+\s+([0-9.e+]+) ns/op`)
)

// readCosts returns what BenchmarkGrowth of all packages printed, in the order of the paths. Of
// several results for the same size, it has the median.
func readCosts(t *testing.T, printed string) (all []cost) {
	t.Helper()
	type point struct {
		path  string
		hosts int
	}
	found := map[point][]time.Duration{}
	for _, m := range benchmarked.FindAllStringSubmatch(printed, -1) {
		hosts, _ := strconv.Atoi(m[2])
		ns, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		at := point{strings.ReplaceAll(m[1], "_", " "), hosts}
		found[at] = append(found[at], time.Duration(ns))
	}
	byPath := map[string]map[int]time.Duration{}
	for at, times := range found {
		if byPath[at.path] == nil {
			byPath[at.path] = map[int]time.Duration{}
		}
		slices.Sort(times)
		byPath[at.path][at.hosts] = times[len(times)/2]
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		all = append(all, cost{path, byPath[path]})
	}
	return all
}

// points returns the costs in ms over the number of hosts, from few to many.
func (c cost) points() (points []figure.Point) {
	for _, hosts := range slices.Sorted(maps.Keys(c.took)) {
		points = append(points, figure.Point{X: float64(hosts), Y: c.took[hosts].Seconds() * 1000})
	}
	return points
}

// slope returns the power with which Y grows with X: the slope of the line through the logarithms with
// the least squares. All values are above 0, and those of X differ.
func slope(points []figure.Point) float64 {
	var x, y, xx, xy float64
	for _, p := range points {
		lx, ly := math.Log(p.X), math.Log(p.Y)
		x, y, xx, xy = x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	n := float64(len(points))
	return (n*xy - x*y) / (n*xx - x*x)
}

func (c cost) slope() string { return fmt.Sprintf("%.2f", slope(c.points())) }

// rounded returns a time with two or three digits, such as 2.1 µs or 120 ms.
func rounded(d time.Duration) string {
	value, unit := float64(d.Nanoseconds()), "ns"
	for _, larger := range []string{"µs", "ms", "s"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, larger
	}
	if value < 10 {
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// drawCosts returns the figure. Its legend has the paths from the most expensive one to the cheapest.
func drawCosts(all []cost) *figure.Figure {
	largest := growth.Hosts[len(growth.Hosts)-1]
	all = slices.SortedFunc(slices.Values(all), func(a, b cost) int { return cmp.Compare(b.took[largest], a.took[largest]) })
	panel := figure.Panel{
		Title: "Cost of one run, with its slope: 1 is linear in the hosts",
		X:     figure.Axis{Label: "hosts", Log: true}, Y: figure.Axis{Label: "median CPU time, ms", Log: true}, LegendBeside: true,
	}
	for _, c := range all {
		panel.Lines = append(panel.Lines, figure.Line{Name: c.slope() + "  " + c.path, Points: c.points()})
	}
	return &figure.Figure{Width: 9, Height: 4.5, Rows: [][]figure.Panel{{panel}}}
}

const costsPath = "../../docs/figures/cost-of-hosts"

// writeCosts writes the figure and its numbers.
func writeCosts(t *testing.T, all []cost) {
	t.Helper()
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	rows := [][]string{{"path", "hosts", "median_ns"}}
	for _, c := range all {
		for _, hosts := range slices.Sorted(maps.Keys(c.took)) {
			rows = append(rows, []string{c.path, strconv.Itoa(hosts), strconv.FormatInt(c.took[hosts].Nanoseconds(), 10)})
		}
	}
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(costsPath+".csv", table.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := drawCosts(all).WriteFiles(costsPath); err != nil {
		t.Fatal(err)
	}
}

// drawnCosts returns the numbers of the figure.
func drawnCosts(t *testing.T) (all []cost) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(repository.Read(t, costsPath+".csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if len(all) == 0 || all[len(all)-1].path != row[0] {
			all = append(all, cost{row[0], map[int]time.Duration{}})
		}
		hosts, _ := strconv.Atoi(row[1])
		ns, _ := strconv.ParseInt(row[2], 10, 64)
		all[len(all)-1].took[hosts] = time.Duration(ns)
	}
	return all
}

// With ALMANAC_GROWTH, what the benchmarks of make growth printed, this test writes the figure, its numbers and
// the table. Otherwise it holds the table and the legend against the numbers.
func TestThePageOnPerformanceHasTheGrowthOfCosts(t *testing.T) {
	const file = "../../docs/performance.md"
	if printed := os.Getenv("ALMANAC_GROWTH"); printed != "" {
		writeCosts(t, readCosts(t, repository.Read(t, printed)))
	}
	all, page := drawnCosts(t), repository.Read(t, file)
	cells := map[string]map[string]string{"100": {}, "10,000": {}, "slope": {}}
	for _, c := range all {
		if got := slices.Sorted(maps.Keys(c.took)); !slices.Equal(got, growth.Hosts) {
			t.Errorf("%s is measured with %d hosts", c.path, got)
		}
		if n := strings.Count(page, "\n| "+c.path+" |"); n != 1 {
			t.Errorf("docs/performance.md has %d rows %q, want 1", n, c.path)
		}
		if svg := repository.Read(t, costsPath+".svg"); !strings.Contains(svg, ">"+c.slope()+"  "+c.path+"<") {
			t.Errorf("the legend of the figure lacks %s with the slope %s", c.path, c.slope())
		}
		cells["100"][c.path], cells["10,000"][c.path], cells["slope"][c.path] = rounded(c.took[100]), rounded(c.took[10_000]), c.slope()
	}
	measured := 0
	for _, p := range packages(t) {
		for _, text := range textsOf(t, p.Dir+"/*_test.go") {
			measured += len(measures.FindAllString(text, -1))
		}
	}
	if measured != len(all) {
		t.Errorf("%d paths are measured, and the figure has %d", measured, len(all))
	}
	want := page
	for column, of := range cells {
		want = filled(want, "path ", column, of)
	}
	if want == page || t.Failed() {
		return
	}
	if os.Getenv("ALMANAC_GROWTH") == "" {
		t.Fatal("the table of docs/performance.md has other numbers than docs/figures/cost-of-hosts.csv: make growth writes both")
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheSlopeIsThePowerWithWhichACostGrows(t *testing.T) {
	for _, power := range []float64{-1, 0, 0.5, 1, 1.7, 2} {
		var points []figure.Point
		for _, hosts := range growth.Hosts {
			points = append(points, figure.Point{X: float64(hosts), Y: 0.003 * math.Pow(float64(hosts), power)})
		}
		if got := slope(points); math.Abs(got-power) > 1e-9 {
			t.Errorf("a cost with the power %v has the slope %v", power, got)
		}
	}
	// With logarithms 0, 1, 2 and 0, 1, 1, the least squares have the slope 1/2.
	if got := slope([]figure.Point{{X: 1, Y: 1}, {X: math.E, Y: math.E}, {X: math.E * math.E, Y: math.E}}); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("got the slope %v, want 0.5", got)
	}
}

func TestCostsAreReadFromWhatBenchmarksPrint(t *testing.T) {
	const printed = "goos: linux\nBenchmarkGrowth/find_and_book/hosts=100-2         \t  500000\t      2100 ns/op\n" +
		"BenchmarkGrowth/find_and_book/hosts=300 \t 1\t 9e+06 ns/op\nBenchmarkGrowth/find_and_book/hosts=100-2\t5\t2300 ns/op\n" +
		"BenchmarkGrowth/find_and_book/hosts=100-2\t5\t999999 ns/op\nBenchmarkOther/hosts=100-2\t5\t7 ns/op\nPASS\n"
	all := readCosts(t, printed)
	if len(all) != 1 || all[0].path != "find and book" || !maps.Equal(all[0].took, map[int]time.Duration{100: 2300, 300: 9 * time.Millisecond}) {
		t.Errorf("got %v", all)
	}
	for d, want := range map[time.Duration]string{999: "999 ns", 2140: "2.1 µs", 75_400_000: "75 ms", 1_250_000_000: "1.2 s"} {
		if got := rounded(d); got != want {
			t.Errorf("%v is written as %s, want %s", d, got, want)
		}
	}
}
