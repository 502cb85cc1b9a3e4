// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is the style that distinguishes one series.
type look struct {
	color  color.Color
	dashes []vg.Length
	mark   draw.GlyphDrawer
	fill   color.Color // of bars
}

// looks are the styles of the first series.
var looks = []look{
	{color.RGBA{A: 255}, nil, nil, color.Gray{Y: 215}},
	{color.RGBA{R: 31, G: 90, B: 160, A: 255}, []vg.Length{6, 3}, draw.CircleGlyph{}, color.RGBA{R: 90, G: 150, B: 200, A: 255}},
	{color.RGBA{R: 200, G: 100, B: 30, A: 255}, []vg.Length{1.5, 2}, draw.PyramidGlyph{}, color.RGBA{R: 150, G: 80, B: 30, A: 255}},
	{color.RGBA{R: 110, G: 170, B: 120, A: 255}, []vg.Length{8, 2, 2, 2}, draw.BoxGlyph{}, color.RGBA{R: 40, G: 80, B: 60, A: 255}},
	{color.RGBA{R: 150, G: 60, B: 140, A: 255}, []vg.Length{12, 4}, draw.CrossGlyph{}, color.RGBA{R: 60, G: 20, B: 60, A: 255}},
	{color.Gray{Y: 150}, []vg.Length{3, 3}, draw.PlusGlyph{}, color.Black},
	{color.RGBA{R: 170, G: 40, B: 50, A: 255}, []vg.Length{2, 2, 6, 2, 2, 2}, draw.RingGlyph{}, color.RGBA{R: 200, G: 170, B: 150, A: 255}},
}

// more are the styles of further series; after these, styles repeat.
var more = []look{
	{color.RGBA{R: 20, G: 120, B: 120, A: 255}, []vg.Length{10, 3, 2, 3, 2, 3}, draw.TriangleGlyph{}, color.Gray{Y: 235}},
	{color.RGBA{R: 110, G: 90, B: 30, A: 255}, []vg.Length{4, 1.5}, draw.SquareGlyph{}, color.Gray{Y: 100}},
}

// lookOf returns the color, dashes and mark of the series with that index; they repeat.
func lookOf(i int) look {
	i %= len(looks) + len(more)
	if i < len(looks) {
		return looks[i]
	}
	return more[i-len(looks)]
}

// marks is the approximate number of marks on a line with many points.
const marks = 14

// lines adds the lines of the panel to the plot, with marks, deviations and legend.
func (p *Panel) lines(drawn *plot.Plot) error {
	if len(p.Lines) == 0 {
		return nil
	}
	for i, series := range p.Lines {
		if len(series.Points) == 0 {
			return fmt.Errorf("line %q has no points", series.Name)
		}
		if series.Deviations != nil && len(series.Deviations) != len(series.Points) {
			return fmt.Errorf("line %q: %d deviations for %d points", series.Name, len(series.Deviations), len(series.Points))
		}
		if err := finite(series.Deviations...); err != nil {
			return fmt.Errorf("line %q: %w", series.Name, err)
		}
		look := lookOf(i)
		points := make(plotter.XYs, len(series.Points))
		for n, at := range series.Points {
			if err := finite(at.X, at.Y); err != nil {
				return fmt.Errorf("line %q, point %d: %w", series.Name, n, err)
			}
			points[n] = plotter.XY(at)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("line %q: %w", series.Name, err)
		}
		line.Color, line.Dashes, line.Width = look.color, look.dashes, vg.Points(1.2)
		if series.Step {
			line.StepStyle = plotter.PostStep
		}
		thumbnails := []plot.Thumbnailer{line}
		drawn.Add(line)
		if look.mark != nil {
			spots, err := plotter.NewScatter(some(points, i))
			if err != nil {
				return fmt.Errorf("line %q: %w", series.Name, err)
			}
			spots.GlyphStyle = draw.GlyphStyle{Color: look.color, Radius: vg.Points(2.5), Shape: look.mark}
			drawn.Add(spots)
			thumbnails = append(thumbnails, spots)
		}
		for n, d := range series.Deviations {
			at := points[n]
			aside := vg.Length(float64(i)-float64(len(p.Lines)-1)/2) * vg.Points(1.6) // otherwise they hide each other
			low, high := p.Y.around(at.Y, d)
			up := &whisker{x: at.X, offset: aside, low: low, high: high, style: draw.LineStyle{Color: look.color, Width: vg.Points(0.6)}}
			drawn.Add(up)
			drawn.Y.Min, drawn.Y.Max = min(drawn.Y.Min, up.low), max(drawn.Y.Max, up.high)
		}
		if series.Name != "" {
			drawn.Legend.Add(series.Name, thumbnails...)
		}
	}
	return nil
}

// some returns a few of the points, for marks. The first one differs between series, so that their
// marks do not coincide.
func some(points plotter.XYs, series int) (few plotter.XYs) {
	step := max(1, len(points)/marks)
	for n := (series * step / len(looks)) % step; n < len(points); n += step {
		few = append(few, points[n])
	}
	return few
}

// bars adds the bars of the panel to the plot, side by side in each group, with deviations and legend.
// all is the width of the plot.
func (p *Panel) bars(drawn *plot.Plot, all vg.Length) error {
	width := p.barWidth(drawn, all)
	for i, series := range p.Bars {
		if len(series.Values) != len(p.Groups) || series.Deviations != nil && len(series.Deviations) != len(p.Groups) {
			return fmt.Errorf("bars %q: %d values and %d deviations for %d groups", series.Name, len(series.Values), len(series.Deviations), len(p.Groups))
		}
		if err := finite(append(series.Values, series.Deviations...)...); err != nil {
			return fmt.Errorf("bars %q: %w", series.Name, err)
		}
		chart, err := plotter.NewBarChart(plotter.Values(series.Values), width-vg.Points(barGap))
		if err != nil {
			return fmt.Errorf("bars %q: %w", series.Name, err)
		}
		chart.Color, chart.LineStyle.Width = lookOf(i).fill, vg.Points(0.5)
		chart.Offset = width * vg.Length(float64(i)-float64(len(p.Bars)-1)/2)
		drawn.Add(chart)
		if series.Name != "" {
			drawn.Legend.Add(series.Name, chart)
		}
		for n, d := range series.Deviations {
			upright := Axis{FromZero: true, Share: p.Y.Share}
			low, high := upright.around(series.Values[n], d)
			whisker := &whisker{x: float64(n), offset: chart.Offset, low: low, high: high, style: draw.LineStyle{Color: color.Black, Width: vg.Points(0.75)}}
			drawn.Add(whisker)
			drawn.Y.Max = max(drawn.Y.Max, whisker.high)
		}
	}
	drawn.Y.Min = min(drawn.Y.Min, 0)
	p.name(drawn, p.groupRoom(drawn, all))
	drawn.X.Min, drawn.X.Max = -groupMargin, float64(len(p.Groups))-1+groupMargin
	return nil
}

const (
	barGap      = 2.0 // points
	groupMargin = 0.6 // of a group, left of the first and right of the last
)

// groupRoom returns the width available for one group of bars in a panel with the width all.
func (p *Panel) groupRoom(drawn *plot.Plot, all vg.Length) vg.Length {
	const axis = 70.0 // points
	all -= vg.Points(axis)
	if p.legendBeside() {
		names := vg.Length(0)
		for _, series := range p.Bars {
			names = max(names, drawn.Legend.TextStyle.Width(series.Name))
		}
		all -= names + drawn.Legend.ThumbnailWidth + vg.Points(2*legendGap)
	}
	return all / vg.Length(float64(max(1, len(p.Groups)))-1+2*groupMargin)
}

// barWidth returns the width of a bar that leaves the space of one bar between groups.
func (p *Panel) barWidth(drawn *plot.Plot, all vg.Length) vg.Length {
	width := p.groupRoom(drawn, all) / vg.Length(len(p.Bars)+1)
	return min(max(width, vg.Points(2*barGap)), vg.Points(40))
}

// name adds the names of the groups below the bars, in a smaller font if they are wider than room,
// and in two rows if that is not enough.
func (p *Panel) name(drawn *plot.Plot, room vg.Length) {
	const apart, smallest = 4.0, 7.0 // points
	style := &drawn.X.Tick.Label
	names, needed := slices.Clone(p.Groups), vg.Length(0)
	for _, name := range names {
		needed = max(needed, style.Width(name))
	}
	fitting := style.Font.Size * (room - vg.Points(apart)) / needed
	style.Font.Size = min(style.Font.Size, max(fitting, vg.Points(smallest)))
	if fitting < style.Font.Size {
		lines := 0
		for _, name := range names {
			lines = max(lines, 1+strings.Count(name, "\n"))
		}
		for n := 1; n < len(names); n += 2 {
			names[n] = strings.Repeat("\n", lines) + names[n]
		}
	}
	drawn.NominalX(names...)
}

// whisker is the vertical line of a deviation.
type whisker struct {
	x         float64
	offset    vg.Length
	low, high float64
	style     draw.LineStyle
}

// Plot implements plot.Plotter.
func (w *whisker) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := x(w.x) + w.offset
	c.StrokeLines(w.style, c.ClipLinesY([]vg.Point{{X: at, Y: y(w.low)}, {X: at, Y: y(w.high)}})...)
}
