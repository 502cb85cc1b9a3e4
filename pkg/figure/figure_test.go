// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// both returns a figure of a panel with steps and one with bars.
func both() *Figure {
	steps := func(name string, values ...float64) Line {
		l := Line{Name: name, Step: true}
		for i, v := range values {
			l.Points = append(l.Points, Point{1_800_000_000 + 3600*float64(i), v})
		}
		return l
	}
	return &Figure{Width: 8, Height: 3, Rows: [][]Panel{{
		{Title: "a day", X: Axis{Label: "time, UTC", Time: true}, Y: Axis{Label: "hosts"}, Lines: []Line{steps("in use", 1, 4, 2, 2), steps("forecast", 2, 2, 4, 3)}},
		{
			Title: "scores", Y: Axis{Label: "host-hours"}, Groups: []string{"k = 3", "k = 10"},
			Bars: []Bars{{Name: "last value", Values: []float64{3, 9}, Deviations: []float64{1, 2}}, {Name: "maximum", Values: []float64{4, 5}}},
		},
	}}}
}

func TestAFigureIsWrittenAsSVGAndPNG(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figure")
	if err := both().WriteFiles(path); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a day", "time, UTC", "hosts", "in use", "forecast", "scores", "host-hours", "k = 3", "last value", "09:00"} {
		if !strings.Contains(string(svg), ">"+text+"<") {
			t.Errorf("the SVG lacks %q", text)
		}
	}
	raw, err := os.ReadFile(path + ".png")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != 8*144 || size.Y != 3*144 {
		t.Errorf("the PNG is %v pixels", size)
	}
	dark := 0
	for x := range 8 * 144 {
		for y := range 3 * 144 {
			if r, _, _, _ := picture.At(x, y).RGBA(); r < 0x8000 {
				dark++
			}
		}
	}
	if dark < 1000 {
		t.Errorf("the PNG has %d dark pixels", dark)
	}
}

func TestAFigureIsTheSameEachTime(t *testing.T) {
	var first, second bytes.Buffer
	if err := both().SVG(&first); err != nil {
		t.Fatal(err)
	}
	if err := both().SVG(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two SVGs of one figure differ")
	}
}

func TestDeviationsOfLinesAreDrawnAndHaveRoom(t *testing.T) {
	paths := func(deviations ...float64) int {
		f := both()
		f.Rows[0][0].Lines[0].Deviations = deviations
		var b bytes.Buffer
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		return strings.Count(b.String(), "stroke-width:0.6\"")
	}
	if without, with := paths(), paths(0, 0, 1, 1); with != without+4 {
		t.Errorf("%d lines are drawn with four deviations, %d without", with, without)
	}
	panel := both().Rows[0][0]
	panel.Lines[0].Deviations, panel.LegendBeside = []float64{0, 0.5, 0, 20}, true
	if p, err := panel.plot(300, 300); err != nil || !(-20 < p.Y.Min && p.Y.Min < -18 && 22 < p.Y.Max && p.Y.Max < 24) {
		t.Errorf("the axis does not span the deviations with a little room (%v)", err)
	}
	panel.Y.FromZero = true
	if p, err := panel.plot(300, 300); err != nil || p.Y.Min != 0 {
		t.Errorf("deviations of what is not negative reach below 0 (%v)", err)
	}
}

func TestALegendBesideLeavesTheChartItsHeight(t *testing.T) {
	f := both()
	for range 5 {
		f.Rows[0][0].Lines = append(f.Rows[0][0].Lines, f.Rows[0][0].Lines[0])
	}
	top := func(beside bool) float64 {
		f.Rows[0][0].LegendBeside = beside
		p, err := f.Rows[0][0].plot(300, 300)
		if err != nil {
			t.Fatal(err)
		}
		return p.Y.Max
	}
	if inside, beside := top(false), top(true); beside != 4 || inside <= 5 {
		t.Errorf("with values up to 4 the axis ends at %v with the legend beside and %v with it inside", beside, inside)
	}
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), ">in use<"); n != 6 {
		t.Errorf("the legend beside the chart has %d of 6 series", n)
	}
}

func TestSharesAreDrawnFromZeroToOne(t *testing.T) {
	f := both()
	steps, bars := f.Rows[0][0], f.Rows[0][1]
	for i := range steps.Lines {
		for n := range steps.Lines[i].Points {
			steps.Lines[i].Points[n].Y /= 4
		}
		steps.Lines[i].Deviations = []float64{0.5, 0.5, 0.5, 0.5}
	}
	bars.Bars[0].Values, bars.Bars[1].Values = []float64{0.3, 0.9}, []float64{0.9, 1}
	for _, panel := range []Panel{steps, bars} {
		if p, err := panel.plot(300, 300); err != nil || p.Y.Max <= 1 {
			t.Errorf("%s: the deviations do not pass 1, so nothing is shown (%v)", panel.Title, err)
		}
		panel.Y.Share = true
		if p, err := panel.plot(300, 300); err != nil || p.Y.Min != 0 || p.Y.Max != 1 || !panel.legendBeside() {
			t.Errorf("%s: the axis of a share goes beyond it, or its legend lies on the chart (%v)", panel.Title, err)
		}
	}
}

// groups returns the names of the groups, the width of the widest and the room of a group, in
// points.
func groups(t *testing.T, p Panel, width vg.Length) (names []string, widest, room vg.Length) {
	t.Helper()
	drawn, err := p.plot(width, 300)
	if err != nil {
		t.Fatal(err)
	}
	room = width - vg.Points(70)
	if p.legendBeside() {
		room -= drawn.Legend.ThumbnailWidth
		for _, b := range p.Bars {
			room = min(room, width-vg.Points(70)-drawn.Legend.ThumbnailWidth-drawn.Legend.TextStyle.Width(b.Name))
		}
	}
	for _, tick := range drawn.X.Tick.Marker.Ticks(drawn.X.Min, drawn.X.Max) {
		names, widest = append(names, tick.Label), max(widest, drawn.X.Tick.Label.Width(tick.Label))
	}
	return names, widest, room / vg.Length(drawn.X.Max-drawn.X.Min)
}

func TestNamesOfGroupsDoNotOverlap(t *testing.T) {
	p := Panel{Groups: []string{"equal", "partial_hour", "running_time", "age", "price", "priority"}, Bars: []Bars{{Name: "one", Values: make([]float64, 6)}}}
	p.Bars[0].Values[0] = 1
	if names, widest, room := groups(t, p, 420); widest >= room || names[1] != "partial_hour" {
		t.Errorf("%q are up to %v wide, and have %v each", names, widest, room)
	}
	if names, widest, room := groups(t, p, 300); widest >= 2*room || names[1] != "\npartial_hour" || names[2] != "running_time" {
		t.Errorf("%q are up to %v wide, and have %v each", names, widest, room)
	}
}

func TestALegendBesideBarsLeavesGroupsApart(t *testing.T) {
	p := Panel{Groups: []string{"a", "b", "c", "d"}, LegendBeside: true}
	for _, name := range []string{"the default scheduler", "the preemptible-aware scheduler", "the retrying scheduler"} {
		p.Bars = append(p.Bars, Bars{Name: name, Values: []float64{1, 2, 3, 4}})
	}
	_, _, room := groups(t, p, 400)
	drawn := plot.New()
	drawn.Legend.ThumbnailWidth = vg.Points(32)
	if err := p.bars(drawn, 400); err != nil {
		t.Fatal(err)
	}
	if width := p.barWidth(drawn, 400); width*vg.Length(len(p.Bars)) >= room {
		t.Errorf("three bars of %v do not fit into %v", width, room)
	}
}

func TestSeriesDifferWithoutColours(t *testing.T) {
	lines := slices.Concat(looks, more)
	for i, a := range lines {
		for _, b := range lines[:i] {
			if slices.Equal(a.dashes, b.dashes) || a.mark == b.mark {
				t.Errorf("two lines have the dashes %v and the mark %v", a.dashes, a.mark)
			}
		}
	}
	for i, a := range looks {
		for _, b := range looks[:i] {
			light := func(c color.Color) int { return int(color.GrayModel.Convert(c).(color.Gray).Y) }
			if apart := light(a.fill) - light(b.fill); apart > -15 && apart < 15 {
				t.Errorf("the bars %v and %v are as light", a.fill, b.fill)
			}
		}
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	for name, change := range map[string]func(*Figure){
		"no panel":             func(f *Figure) { f.Rows = nil },
		"no size":              func(f *Figure) { f.Width = 0 },
		"rows of two lengths":  func(f *Figure) { f.Rows = append(f.Rows, f.Rows[0][:1]) },
		"nothing in a panel":   func(f *Figure) { f.Rows[0][0].Lines = nil },
		"lines and bars":       func(f *Figure) { f.Rows[0][0].Bars = f.Rows[0][1].Bars },
		"a line of no points":  func(f *Figure) { f.Rows[0][0].Lines[0].Points = nil },
		"no number":            func(f *Figure) { f.Rows[0][0].Lines[0].Points[0].Y = math.NaN() },
		"a deviation too few":  func(f *Figure) { f.Rows[0][0].Lines[0].Deviations = []float64{1} },
		"an endless deviation": func(f *Figure) { f.Rows[0][0].Lines[0].Deviations = []float64{1, 1, math.Inf(1), 1} },
		"infinite bars":        func(f *Figure) { f.Rows[0][1].Bars[0].Values[0] = math.Inf(1) },
		"a group too many":     func(f *Figure) { f.Rows[0][1].Groups = append(f.Rows[0][1].Groups, "k = 30") },
	} {
		f := both()
		change(f)
		if err := f.SVG(new(bytes.Buffer)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := both().WriteFiles(filepath.Join(t.TempDir(), "nowhere", "figure")); err == nil {
		t.Error("no error where there is no folder")
	}
}

func TestALogarithmicAxisSpansPowersOfTen(t *testing.T) {
	slopes := func() Panel {
		return Panel{
			X: Axis{Label: "hosts", Log: true}, Y: Axis{Label: "ms", Log: true}, LegendBeside: true,
			Lines: []Line{{Name: "linear", Points: []Point{{100, 0.02}, {10_000, 2}}}, {Name: "flat", Points: []Point{{100, 30}, {10_000, 30}}}},
		}
	}
	p := slopes()
	drawn, err := p.plot(300, 300)
	if err != nil || drawn.X.Min != 100 || drawn.X.Max != 10_000 || drawn.Y.Min != 0.01 || drawn.Y.Max != 100 {
		t.Fatalf("the axes are from %v to %v and from %v to %v (%v)", drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max, err)
	}
	for _, c := range []struct {
		axis plot.Axis
		want string
	}{{drawn.X, "100 300 1000 3000 10000"}, {drawn.Y, "0.01 0.1 1 10 100"}} {
		var labels []string
		for _, tick := range c.axis.Tick.Marker.Ticks(c.axis.Min, c.axis.Max) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("an axis is marked %s, want %s", got, c.want)
		}
		if middle := c.axis.Norm(math.Sqrt(c.axis.Min * c.axis.Max)); math.Abs(middle-0.5) > 1e-9 {
			t.Errorf("the geometric mean of both ends is at %v of the axis", middle)
		}
	}
	p.Lines[0].Points, p.Lines[1].Points = []Point{{100, 1}}, []Point{{100, 1}}
	if same, err := p.plot(300, 300); err != nil || same.X.Max != 1000 || same.Y.Max != 10 {
		t.Errorf("one point lies on axes up to %v and %v (%v)", same.X.Max, same.Y.Max, err)
	}
	p = slopes()
	p.LegendBeside = false
	if inside, err := p.plot(300, 300); err != nil || inside.Y.Max <= 100 {
		t.Errorf("a legend inside has no room (%v)", err)
	}
	for _, change := range []func(*Panel){
		func(p *Panel) { p.Lines[0].Points[0].X = 0 },
		func(p *Panel) { p.Lines[0].Points[0].Y = -1 },
		func(p *Panel) { p.Lines[0].Deviations = []float64{0.03, 0} },
	} {
		p := slopes()
		change(&p)
		if _, err := p.plot(300, 300); err == nil {
			t.Errorf("%+v is drawn", p.Lines[0])
		}
	}
}

func TestALineOfFewPointsHasAMarkOnEach(t *testing.T) {
	for series := range len(looks) + len(more) {
		if got := len(some(make(plotter.XYs, 5), series)); got != 5 {
			t.Errorf("series %d has %d marks on 5 points", series, got)
		}
	}
}

func TestAxesOfNumbersHaveFourToElevenRoundMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		high := low + rapid.Float64Range(1e-3, 1e6).Draw(t, "range")
		ticks := numberTicks{}.Ticks(low, high)
		if len(ticks) < 4 || len(ticks) > 11 {
			t.Fatalf("%v to %v has %d marks", low, high, len(ticks))
		}
		for _, tick := range ticks {
			if tick.Value < low || tick.Value > high || tick.Label == "" {
				t.Fatalf("the mark %q lies at %v, outside of %v to %v", tick.Label, tick.Value, low, high)
			}
		}
	})
	for _, c := range []struct {
		low, high float64
		want      string
	}{{0, 1, "0 0.2 0.4 0.6 0.8 1"}, {5, 9, "5 6 7 8 9"}, {-0.3, 3, "0 1 2 3"}, {0, 2.1, "0 0.5 1 1.5 2"}, {0, 620, "0 100 200 300 400 500 600"}} {
		var labels []string
		for _, tick := range (numberTicks{}).Ticks(c.low, c.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%v to %v is marked %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// A viewer with another font, whose letters are wider, draws each text as wide as in the layout
// of the figure.
func TestTextsKeepTheirPlacesWithoutTheFont(t *testing.T) {
	var svg bytes.Buffer
	if err := both().SVG(&svg); err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile(`(?s)<text textLength="([0-9.]+)" lengthAdjust="spacingAndGlyphs" [^>]*font-family:'Liberation Serif',[^>]*,serif;[^>]*>([^<]*)<`).FindAllStringSubmatch(svg.String(), -1)
	if n := strings.Count(svg.String(), "<text "); n == 0 || len(texts) != n {
		t.Fatalf("%d of %d texts have a width and fonts to choose from", len(texts), n)
	}
	width := map[string]float64{}
	for _, text := range texts {
		width[text[2]], _ = strconv.ParseFloat(text[1], 64)
	}
	if !(width["forecast"] > width["in use"] && width["in use"] > 0) {
		t.Errorf("widths %v", width)
	}
}
