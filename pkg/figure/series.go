package figure

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how a series differs from the others.
type look struct {
	color  color.Color
	dashes []vg.Length
	mark   draw.GlyphDrawer
	fill   color.Color // of bars
}

// looks are used in turn.
var looks = []look{
	{color.RGBA{A: 255}, nil, nil, color.Gray{Y: 215}},
	{color.RGBA{R: 31, G: 90, B: 160, A: 255}, []vg.Length{6, 3}, draw.CircleGlyph{}, color.RGBA{R: 90, G: 150, B: 200, A: 255}},
	{color.RGBA{R: 200, G: 100, B: 30, A: 255}, []vg.Length{1.5, 2}, draw.PyramidGlyph{}, color.RGBA{R: 150, G: 80, B: 30, A: 255}},
	{color.RGBA{R: 110, G: 170, B: 120, A: 255}, []vg.Length{8, 2, 2, 2}, draw.BoxGlyph{}, color.RGBA{R: 40, G: 80, B: 60, A: 255}},
	{color.RGBA{R: 150, G: 60, B: 140, A: 255}, []vg.Length{12, 4}, draw.CrossGlyph{}, color.RGBA{R: 60, G: 20, B: 60, A: 255}},
	{color.Gray{Y: 150}, []vg.Length{3, 3}, draw.PlusGlyph{}, color.Black},
	{color.RGBA{R: 170, G: 40, B: 50, A: 255}, []vg.Length{2, 2, 6, 2, 2, 2}, draw.RingGlyph{}, color.RGBA{R: 200, G: 170, B: 150, A: 255}},
}

func lookOf(i int) look { return looks[i%len(looks)] }

// marks is how many marks a line has at most.
const marks = 14

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
			aside := vg.Length(float64(i)-float64(len(p.Lines)-1)/2) * vg.Points(1.6) // else they hide each other
			up := &whisker{x: at.X, offset: aside, low: at.Y - d, high: at.Y + d, style: draw.LineStyle{Color: look.color, Width: vg.Points(0.6)}}
			drawn.Add(up)
			drawn.Y.Min, drawn.Y.Max = min(drawn.Y.Min, up.low), max(drawn.Y.Max, up.high)
		}
		if series.Name != "" {
			drawn.Legend.Add(series.Name, thumbnails...)
		}
	}
	return nil
}

// some gives a few of the points, others for each series.
func some(points plotter.XYs, series int) (few plotter.XYs) {
	step := max(1, len(points)/marks)
	for n := (series * step / len(looks)) % len(points); n < len(points); n += step {
		few = append(few, points[n])
	}
	return few
}

func (p *Panel) bars(drawn *plot.Plot, all vg.Length) error {
	const axis, gap = 70.0, 2.0 // points
	width := (all - vg.Points(axis)) / vg.Length(max(1, len(p.Groups))*(len(p.Bars)+1))
	width = min(max(width, vg.Points(2*gap)), vg.Points(40))
	for i, series := range p.Bars {
		if len(series.Values) != len(p.Groups) || series.Deviations != nil && len(series.Deviations) != len(p.Groups) {
			return fmt.Errorf("bars %q: %d values and %d deviations for %d groups", series.Name, len(series.Values), len(series.Deviations), len(p.Groups))
		}
		if err := finite(append(series.Values, series.Deviations...)...); err != nil {
			return fmt.Errorf("bars %q: %w", series.Name, err)
		}
		chart, err := plotter.NewBarChart(plotter.Values(series.Values), width-vg.Points(gap))
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
			whisker := &whisker{x: float64(n), offset: chart.Offset, low: max(0, series.Values[n]-d), high: series.Values[n] + d, style: draw.LineStyle{Color: color.Black, Width: vg.Points(0.75)}}
			drawn.Add(whisker)
			drawn.Y.Max = max(drawn.Y.Max, whisker.high)
		}
	}
	drawn.Y.Min = min(drawn.Y.Min, 0)
	drawn.NominalX(p.Groups...)
	drawn.X.Min, drawn.X.Max = -0.6, float64(len(p.Groups))-0.4
	return nil
}

// whisker is a line along which a value may vary.
type whisker struct {
	x         float64
	offset    vg.Length
	low, high float64
	style     draw.LineStyle
}

// Plot draws the line.
func (w *whisker) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := x(w.x) + w.offset
	c.StrokeLines(w.style, c.ClipLinesY([]vg.Point{{X: at, Y: y(w.low)}, {X: at, Y: y(w.high)}})...)
}
