// Package figure draws lines, steps and bars as SVG and PNG. What it draws can be read
// without colours: series differ in how light they are, in their dashes and in their marks.
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

// Figure is one picture: rows of panels, all of which have as many.
type Figure struct {
	Width, Height float64 // inches
	Rows          [][]Panel
}

// Panel is one chart, of lines or of bars.
type Panel struct {
	Title string
	X, Y  Axis
	Lines []Line
	// Bars stand in groups, one of each series; Groups names these from the left.
	Bars   []Bars
	Groups []string
	// LegendBeside puts the legend to the right of the chart, where many series would leave
	// it little room inside.
	LegendBeside bool
}

// Axis says what is measured along an axis, with its unit.
type Axis struct {
	Label string
	// FromZero has the range begin at 0 even where the data does not, as that of bars does.
	// Deviations from what is not negative end there.
	FromZero bool
	// Share says that values are from 0 to 1: neither the axis nor a deviation goes beyond.
	// Where that is the upright axis the legend is beside the chart.
	Share bool
	// Time says that values are seconds since 1970, to be shown in UTC.
	Time bool
}

// Line is a series of points, from the left to the right.
type Line struct {
	Name   string
	Points []Point
	Step   bool // each value holds until the next point
	// Deviations, one for each point, are drawn as lines up and down from it; nil draws none.
	Deviations []float64
}

// Point is one of a line.
type Point struct{ X, Y float64 }

// Bars are one series of bars, with a value for each group.
type Bars struct {
	Name   string
	Values []float64
	// Deviations are drawn as lines up and down from the values; nil draws none.
	Deviations []float64
}

// WriteFiles draws the figure into the files path.svg and path.png.
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

// SVG draws the figure as scalable vector graphics.
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

// PNG draws the figure as a bitmap.
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

func (f *Figure) size() (width, height vg.Length, err error) {
	const most = 100
	if !(f.Width > 0 && f.Height > 0 && f.Width <= most && f.Height <= most) {
		return 0, 0, fmt.Errorf("a figure of %v by %v inches cannot be drawn", f.Width, f.Height)
	}
	return vg.Length(f.Width) * vg.Inch, vg.Length(f.Height) * vg.Inch, nil
}

func (f *Figure) draw(c vg.CanvasSizer) error {
	if len(f.Rows) == 0 || len(f.Rows[0]) == 0 {
		return errors.New("a figure needs a panel")
	}
	width, height := c.Size()
	width, height = width/vg.Length(len(f.Rows[0])), height/vg.Length(len(f.Rows))
	plots, legends := make([][]*plot.Plot, len(f.Rows)), make([][]plot.Legend, len(f.Rows))
	for i, row := range f.Rows {
		if len(row) != len(f.Rows[0]) {
			return errors.New("the rows of a figure need as many panels")
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

// legendBeside says whether there is a legend that is drawn to the right of the chart.
func (p *Panel) legendBeside() bool {
	return p.LegendBeside || p.Y.Share && p.series() > 1
}

func (p *Panel) series() int { return max(len(p.Lines), len(p.Bars)) }

func (p *Panel) deviates() bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool { return l.Deviations != nil }) ||
		slices.ContainsFunc(p.Bars, func(b Bars) bool { return b.Deviations != nil })
}

// legendGap is between a chart and the legend beside it.
const legendGap = 10.0 // points

// besides draws a legend at the right edge, and gives the canvas that is left.
func besides(c draw.Canvas, legend plot.Legend) draw.Canvas {
	gap, title := vg.Points(legendGap), vg.Points(20)
	size := legend.Rectangle(c).Size()
	legend.Draw(draw.Crop(c, c.Rectangle.Size().X-size.X, 0, 0, -title))
	return draw.Crop(c, 0, -size.X-gap, 0, 0)
}

// plot gives the panel, which takes about so much room with its axes.
func (p *Panel) plot(width, height vg.Length) (*plot.Plot, error) {
	if len(p.Lines) == 0 == (len(p.Bars) == 0) {
		return nil, errors.New("it needs lines or bars, and not both")
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
	if p.deviates() { // no whisker ends at the edge of the chart
		room := 0.04 * (drawn.Y.Max - drawn.Y.Min)
		drawn.Y.Max += room
		if drawn.Y.Min >= 0 {
			drawn.Y.Min = max(drawn.Y.Min-room, 0)
		} else {
			drawn.Y.Min -= room
		}
	}
	p.X.set(&drawn.X)
	p.Y.set(&drawn.Y)
	if entries := p.series(); entries > 1 && !p.legendBeside() { // room for the legend
		legend, axes := vg.Points(17)*vg.Length(entries), vg.Points(60)
		drawn.Y.Max += (drawn.Y.Max - drawn.Y.Min) * float64(legend/max(height-axes-legend, legend))
	}
	return drawn, nil
}

func (a *Axis) set(to *plot.Axis) {
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
}

// around gives how far a deviation reaches on both sides of a value.
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

func finite(values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v cannot be drawn", v)
		}
	}
	return nil
}
