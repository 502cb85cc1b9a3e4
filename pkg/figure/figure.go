// SPDX-License-Identifier: Apache-2.0

// Package figure draws lines, steps and bars as SVG and PNG. Its figures are readable without
// colors: series differ in lightness, dashes and marks.
package figure

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is one picture: rows of panels, each row with the same number of panels.
type Figure struct {
	Width, Height float64 // inches
	Rows          [][]Panel
}

// Panel is one chart, either of lines or of bars.
type Panel struct {
	Title string
	X, Y  Axis
	Lines []Line
	// Bars are the series of bars. They stand in groups, with one bar of each series; Groups are
	// the names of the groups from left to right.
	Bars   []Bars
	Groups []string
	// LegendBeside places the legend to the right of the chart, for charts with too many series
	// for a legend inside.
	LegendBeside bool
}

// Axis describes an axis and the quantity on it.
type Axis struct {
	Label string
	// FromZero makes the range begin at 0 even if the data does not, as for bars. The deviations
	// of nonnegative values do not extend below 0.
	FromZero bool
	// Share means that values are from 0 to 1: neither the axis nor a deviation exceeds this range.
	// If this is the vertical axis, the legend is beside the chart.
	Share bool
	// Time means that values are seconds since 1970, which are shown in UTC.
	Time bool
	// Log means a logarithmic scale from a power of ten to another. All values and both ends of
	// their deviations need to be above 0.
	Log bool
}

// Line is a series of points, from left to right.
type Line struct {
	Name   string
	Points []Point
	Step   bool // each value holds until the next point
	// Deviations, one for each point, are drawn as vertical lines around it; nil means none.
	Deviations []float64
}

// Point is one point of a line.
type Point struct{ X, Y float64 }

// Bars is one series of bars, with a value for each group.
type Bars struct {
	Name   string
	Values []float64
	// Deviations are drawn as vertical lines around the values; nil means none.
	Deviations []float64
}

// WriteFiles writes the figure to the files path.svg and path.png.
func (f *Figure) WriteFiles(path string) error {
	for suffix, write := range map[string]func(io.Writer) error{".svg": f.SVG, ".png": f.PNG} {
		file, err := os.Create(path + suffix)
		if err != nil {
			return fmt.Errorf("draw a figure: %w", err)
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("draw %s%s: %w", path, suffix, err)
		}
	}
	return nil
}

// SVG writes the figure as scalable vector graphics.
func (f *Figure) SVG(w io.Writer) error {
	width, height, err := f.size()
	if err != nil {
		return err
	}
	canvas := &textCanvas{Canvas: vgsvg.New(width, height)}
	if err := f.draw(canvas); err != nil {
		return err
	}
	return canvas.write(w)
}

// PNG writes the figure as a bitmap.
func (f *Figure) PNG(w io.Writer) error {
	width, height, err := f.size()
	if err != nil {
		return err
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
	if err := f.draw(canvas); err != nil {
		return err
	}
	_, err = canvas.WriteTo(w)
	return err
}

// size returns the width and height of the figure; an error beyond 100 inches.
func (f *Figure) size() (width, height vg.Length, err error) {
	const most = 100
	if !(f.Width > 0 && f.Height > 0 && f.Width <= most && f.Height <= most) {
		return 0, 0, fmt.Errorf("a figure of %v by %v inches cannot be drawn", f.Width, f.Height)
	}
	return vg.Length(f.Width) * vg.Inch, vg.Length(f.Height) * vg.Inch, nil
}

// draw draws the panels in a grid whose axes are aligned. All rows must have the same number of panels.
func (f *Figure) draw(c vg.CanvasSizer) error {
	if len(f.Rows) == 0 || len(f.Rows[0]) == 0 {
		return errors.New("a figure needs a panel")
	}
	width, height := c.Size()
	width, height = width/vg.Length(len(f.Rows[0])), height/vg.Length(len(f.Rows))
	plots, legends := make([][]*plot.Plot, len(f.Rows)), make([][]plot.Legend, len(f.Rows))
	for i, row := range f.Rows {
		if len(row) != len(f.Rows[0]) {
			return errors.New("all rows of a figure need the same number of panels")
		}
		for n := range row {
			p, err := row[n].plot(width, height)
			if err != nil {
				return fmt.Errorf("panel %q: %w", row[n].Title, err)
			}
			var beside plot.Legend
			if row[n].legendBeside() {
				beside, p.Legend = p.Legend, plot.NewLegend()
				beside.Left = true
			}
			plots[i], legends[i] = append(plots[i], p), append(legends[i], beside)
		}
	}
	gap := vg.Points(14)
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: gap, PadY: gap, PadTop: gap / 2, PadBottom: gap / 2, PadLeft: gap / 2, PadRight: gap}
	for i, row := range plot.Align(plots, tiles, draw.New(c)) {
		for n, canvas := range row {
			if f.Rows[i][n].legendBeside() {
				canvas = besides(canvas, legends[i][n])
			}
			plots[i][n].Draw(canvas)
		}
	}
	return nil
}

// legendBeside reports whether the legend is to the right of the chart.
func (p *Panel) legendBeside() bool {
	return p.LegendBeside || p.Y.Share && p.series() > 1
}

// AddLine adds a line, or adds its name to that of a line with the same points.
func (p *Panel) AddLine(line Line) {
	for i := range p.Lines {
		if slices.Equal(p.Lines[i].Points, line.Points) {
			p.Lines[i].Name += ", " + line.Name
			return
		}
	}
	p.Lines = append(p.Lines, line)
}

func (p *Panel) series() int { return max(len(p.Lines), len(p.Bars)) }

func (p *Panel) deviates() bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool { return l.Deviations != nil }) ||
		slices.ContainsFunc(p.Bars, func(b Bars) bool { return b.Deviations != nil })
}

// legendGap is the distance between a chart and the legend beside it.
const legendGap = 10.0 // points

// besides draws a legend at the right edge, and returns the canvas without the space that it takes.
func besides(c draw.Canvas, legend plot.Legend) draw.Canvas {
	gap, title := vg.Points(legendGap), vg.Points(20)
	size := legend.Rectangle(c).Size()
	legend.Draw(draw.Crop(c, c.Rectangle.Size().X-size.X, 0, 0, -title))
	return draw.Crop(c, 0, -size.X-gap, 0, 0)
}

// plot returns the panel as a plot. width and height are its approximate size, including the axes.
func (p *Panel) plot(width, height vg.Length) (*plot.Plot, error) {
	if len(p.Lines) == 0 == (len(p.Bars) == 0) {
		return nil, errors.New("it needs either lines or bars")
	}
	drawn := plot.New()
	drawn.Title.Text, drawn.X.Label.Text, drawn.Y.Label.Text = p.Title, p.X.Label, p.Y.Label
	drawn.Legend.Top, drawn.Legend.Padding = true, vg.Points(2)
	drawn.Legend.ThumbnailWidth = vg.Points(32)
	err := p.lines(drawn)
	if len(p.Bars) > 0 {
		err = p.bars(drawn, width)
	}
	if err != nil {
		return nil, err
	}
	if p.deviates() && !p.Y.Log { // no whisker ends at the edge of the chart
		room := 0.04 * (drawn.Y.Max - drawn.Y.Min)
		drawn.Y.Max += room
		if drawn.Y.Min >= 0 {
			drawn.Y.Min = max(drawn.Y.Min-room, 0)
		} else {
			drawn.Y.Min -= room
		}
	}
	if err := errors.Join(p.X.set(&drawn.X), p.Y.set(&drawn.Y)); err != nil {
		return nil, err
	}
	if entries := p.series(); entries > 1 && !p.legendBeside() { // room for the legend
		legend, axes := vg.Points(17)*vg.Length(entries), vg.Points(60)
		share := float64(legend / max(height-axes-legend, legend))
		if p.Y.Log {
			drawn.Y.Max *= math.Pow(drawn.Y.Max/drawn.Y.Min, share)
		} else {
			drawn.Y.Max += (drawn.Y.Max - drawn.Y.Min) * share
		}
	}
	return drawn, nil
}

// set sets the range, the ticks and the scale of the plot's axis.
func (a *Axis) set(to *plot.Axis) error {
	if a.FromZero {
		to.Min = min(to.Min, 0)
	}
	if a.Share {
		to.Min, to.Max = max(to.Min, 0), min(to.Max, 1)
	}
	switch to.Tick.Marker.(type) {
	case plot.ConstantTicks: // the names of groups
	default:
		to.Tick.Marker = numberTicks{}
		if a.Time {
			to.Tick.Marker = timeTicks{}
		}
	}
	if !a.Log {
		return nil
	}
	if !(to.Min > 0) {
		return fmt.Errorf("axis %q: %v has no place on a logarithmic scale", a.Label, to.Min)
	}
	first, last := int(math.Floor(math.Log10(to.Min))), int(math.Ceil(math.Log10(to.Max)))
	to.Min, to.Max = math.Pow10(first), math.Pow10(max(last, first+1))
	to.Scale, to.Tick.Marker = plot.LogScale{}, logTicks{}
	return nil
}

// around returns both ends of the line of a deviation around a value, within the range that the
// axis allows.
func (a *Axis) around(value, deviation float64) (low, high float64) {
	low, high = value-deviation, value+deviation
	if a.FromZero && value >= 0 {
		low = max(low, 0)
	}
	if a.Share {
		low, high = max(low, 0), min(high, 1)
	}
	return low, high
}

// finite returns an error if one of the values is NaN or infinite.
func finite(values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v cannot be drawn", v)
		}
	}
	return nil
}
