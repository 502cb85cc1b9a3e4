// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestATimelineGoesByTimeThenOrderThenEntry(t *testing.T) {
	line := sim.NewTimeline(100)
	var seen []string
	note := func(what string) func() error {
		return func() error { seen = append(seen, fmt.Sprintf("%s@%d", what, line.Now())); return nil }
	}
	line.At(120, sim.Looking, note("look"))
	line.At(120, sim.Arriving, note("second"))
	line.At(120, sim.Ending, note("end"))
	line.At(120, sim.Arriving, note("third"))
	line.At(110, sim.Looking, func() error {
		line.At(50, sim.Ending, note("late")) // is in the past and happens now
		line.After(5, sim.Ending, note("soon"))
		return nil
	})
	line.At(130, sim.Ending, note("never"))
	if err := line.Run(t.Context(), 130); err != nil {
		t.Fatal(err)
	}
	want := []string{"late@110", "soon@115", "end@120", "second@120", "third@120", "look@120"}
	if !slices.Equal(seen, want) || line.Now() != 130 {
		t.Errorf("the order is %v and the time %d\nwant %v and 130", seen, line.Now(), want)
	}
}

func TestATimelineStopsAtTheFirstErrorAndWhereItShallEnd(t *testing.T) {
	line := sim.NewTimeline(0)
	broken := errors.New("broken")
	line.At(7, sim.Arriving, func() error { return broken })
	if err := line.Run(t.Context(), span.Forever); !errors.Is(err, broken) || line.Now() != 7 {
		t.Errorf("the time is %d, the error %v", line.Now(), err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var again func() error
	again = func() error { stop(); line.After(1, sim.Arriving, again); return nil }
	line.After(1, sim.Arriving, again)
	if err := line.Run(ctx, span.Forever); !errors.Is(err, context.Canceled) {
		t.Errorf("an endless run returned %v after the end of its context", err)
	}
}

func TestRunsGiveTheirResultsInOrderHoweverLongEachTakes(t *testing.T) {
	var told atomic.Int64
	got, err := sim.Runs(t.Context(), 50, func(_, of int) { told.Add(int64(of)) }, func(_ context.Context, i int) (float64, error) {
		sum := 0.0
		for n := range (50 - i) * 1000 {
			sum += math.Sqrt(float64(n))
		}
		return float64(i) + 0*sum, nil
	})
	if err != nil || told.Load() != 50*50 {
		t.Fatalf("%v, reported %d", err, told.Load())
	}
	for i, v := range got {
		if v != float64(i) {
			t.Errorf("run %d returned %v", i, v)
		}
	}
}

func TestRunsStopAtTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	var begun atomic.Int64
	_, err := sim.Runs(t.Context(), 10_000, nil, func(_ context.Context, i int) (int, error) {
		begun.Add(1)
		if i == 3 {
			return 0, broken
		}
		return 0, nil
	})
	if !errors.Is(err, broken) || begun.Load() == 10_000 {
		t.Errorf("%v after %d runs", err, begun.Load())
	}
}

func TestChanceFollowsFromTheSeedAndTheWordsAlone(t *testing.T) {
	draw := func(seed uint64, words ...any) uint64 { return sim.Chance(seed, words...).Uint64() }
	if draw(1, "sizes", 2) != draw(1, "sizes", 2) {
		t.Error("the same is not the same")
	}
	seen := map[uint64]bool{}
	for _, v := range []uint64{draw(1, "sizes", 2), draw(2, "sizes", 2), draw(1, "sizes", 3), draw(1, "times", 2), draw(1, "size", "s", 2)} {
		if seen[v] {
			t.Error("different words make the same numbers")
		}
		seen[v] = true
	}
}

// The mean of 1 to 5 is 3. The deviation is the root of 2.5, and Student's t for 4 degrees of
// freedom is 2.776.
func TestAnEstimateHasTheIntervalOfStudent(t *testing.T) {
	e := sim.Mean([]float64{1, 2, 3, 4, 5})
	if want := 2.776445 * math.Sqrt(2.5/5); e.Mean != 3 || math.Abs(e.Half-want) > 1e-5 {
		t.Errorf("%v, want 3 ± %.5f", e.Format(5), want)
	}
	if one := sim.Mean([]float64{7}); one.Half != 0 || one.String() != "7.000" {
		t.Errorf("one run: got %v", one)
	}
}

func TestTheIntervalOfAnEstimateCoversTheMeanIn95Of100(t *testing.T) {
	chance, covered := sim.Chance(1, "coverage"), 0
	const times = 4000
	for range times {
		values := make([]float64, 5)
		for i := range values {
			values[i] = chance.NormFloat64()
		}
		if e := sim.Mean(values); math.Abs(e.Mean) <= e.Half {
			covered++
		}
	}
	if share := float64(covered) / times; share < 0.94 || share > 0.96 {
		t.Errorf("it covers the mean in %.3f of all", share)
	}
}

func TestAReportHasItsTextResultsAndFigures(t *testing.T) {
	write := func(folder string) {
		t.Helper()
		r := sim.NewReport("Something")
		r.Text("It was run %d times.", 3)
		var shown sim.Table
		shown.Columns = []string{"a|b", "c"}
		shown.Add("x", 0.25)
		r.Table(shown)
		r.Figure("line", "A line.", figure.Figure{Width: 4, Height: 3, Rows: [][]figure.Panel{{{
			Title: "t", X: figure.Axis{Label: "x, s"}, Y: figure.Axis{Label: "y, hosts"},
			Lines: []figure.Line{{Name: "one", Points: []figure.Point{{X: 0, Y: 0}, {X: 1, Y: 1}}}},
		}}}})
		r.File("more.csv", shown)
		r.Results.Columns = []string{"name", "value"}
		r.Results.Add("with, comma", 1.0/3)
		if err := r.Write(folder); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(t.TempDir(), "new", "folder"), t.TempDir()
	write(one)
	write(two)
	for _, name := range []string{"report.md", "results.csv", "more.csv", "line.svg", "line.png"} {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(filepath.Join(two, name)); !bytes.Equal(a, b) {
			t.Errorf("%s is another the second time", name)
		}
	}
	text, _ := os.ReadFile(filepath.Join(one, "report.md"))
	results, _ := os.ReadFile(filepath.Join(one, "results.csv"))
	if !strings.Contains(string(text), `| a\|b | c |`) || !strings.Contains(string(text), "![line](line.svg)") {
		t.Errorf("the report is\n%s", text)
	}
	if want := "name,value\n\"with, comma\",0.333333\n"; string(results) != want {
		t.Errorf("the results are %q, want %q", results, want)
	}
}
