package figure

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// both is a figure of a panel with steps and one with bars.
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

func TestSeriesDifferWithoutColours(t *testing.T) {
	for i, a := range looks {
		for _, b := range looks[:i] {
			if slices.Equal(a.dashes, b.dashes) || a.mark == b.mark {
				t.Errorf("two lines have the dashes %v and the mark %v", a.dashes, a.mark)
			}
			light := func(c color.Color) int { return int(color.GrayModel.Convert(c).(color.Gray).Y) }
			if apart := light(a.fill) - light(b.fill); apart > -15 && apart < 15 {
				t.Errorf("the bars %v and %v are as light", a.fill, b.fill)
			}
		}
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	for name, change := range map[string]func(*Figure){
		"no panel":            func(f *Figure) { f.Rows = nil },
		"no size":             func(f *Figure) { f.Width = 0 },
		"rows of two lengths": func(f *Figure) { f.Rows = append(f.Rows, f.Rows[0][:1]) },
		"nothing in a panel":  func(f *Figure) { f.Rows[0][0].Lines = nil },
		"lines and bars":      func(f *Figure) { f.Rows[0][0].Bars = f.Rows[0][1].Bars },
		"a line of no points": func(f *Figure) { f.Rows[0][0].Lines[0].Points = nil },
		"no number":           func(f *Figure) { f.Rows[0][0].Lines[0].Points[0].Y = math.NaN() },
		"infinite bars":       func(f *Figure) { f.Rows[0][1].Bars[0].Values[0] = math.Inf(1) },
		"a group too many":    func(f *Figure) { f.Rows[0][1].Groups = append(f.Rows[0][1].Groups, "k = 30") },
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
