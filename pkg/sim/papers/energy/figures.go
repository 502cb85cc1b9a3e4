// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// axes contains the label of the axis for each factor.
var axes = map[string]string{
	Share:    "requests known ahead, % of all",
	Horizon:  "horizon, minutes",
	Idleness: "measurements (minutes) a host must be idle",
	Boot:     "median boot time, minutes",
}

// label returns the label of the axis of a measure.
func (m *measure) label() string { return m.name + ", " + m.unit }

// bars draws measures as bars side by side, one group of bars for each cell, with the 95 %
// intervals. groups are the labels of the cells.
func bars(groups []string, cells [][]outcome, shown ...measure) figure.Figure {
	f := figure.Figure{Width: 5 * float64(len(shown)), Height: 3.8, Rows: [][]figure.Panel{nil}}
	for _, m := range shown {
		b := figure.Bars{}
		for _, runs := range cells {
			e := m.estimate(runs)
			b.Values, b.Deviations = append(b.Values, e.Mean), append(b.Deviations, e.Half)
		}
		f.Rows[0] = append(f.Rows[0], figure.Panel{Y: figure.Axis{Label: m.label(), FromZero: true}, Bars: []figure.Bars{b}, Groups: groups})
	}
	return f
}

// strategies returns a figure of all strategies with the base setting, side by side: the core-hours saved,
// the delay of starts, and the kilowatt-hours.
func (r *results) strategies() figure.Figure {
	names, cells := []string{}, [][]outcome{}
	for _, s := range Strategies {
		names, cells = append(names, string(s)), append(cells, r.of(s, r.options.Base))
	}
	names[len(names)-1] = "with reservations"
	return bars(names, cells, saved, delay, kWh)
}

// sweepFigure draws measures over the values of a factor, for the two strategies that switch hosts
// off.
func (r *results) sweepFigure(factor string) figure.Figure {
	f := figure.Figure{Width: 10, Height: 4, Rows: [][]figure.Panel{nil}}
	for _, m := range []measure{saved, delay} {
		panel := figure.Panel{X: figure.Axis{Label: axes[factor]}, Y: figure.Axis{Label: m.label(), FromZero: true}}
		for _, s := range Strategies[1:] {
			line := figure.Line{Name: string(s)}
			for _, v := range r.variantsOf(factor) {
				line.Points = append(line.Points, figure.Point{X: v.x, Y: m.estimate(r.of(s, v.Setting)).Mean})
			}
			panel.Lines = append(panel.Lines, line)
		}
		f.Rows[0] = append(f.Rows[0], panel)
	}
	return f
}

// forecasters draws the forecasters side by side.
func (r *results) forecasters() figure.Figure {
	var names []string
	for _, v := range r.variantsOf(Forecaster) {
		names = append(names, v.value)
	}
	f := figure.Figure{Width: 8, Height: 7}
	for _, m := range []measure{saved, delay} {
		panel := figure.Panel{Y: figure.Axis{Label: m.label(), FromZero: true}, Groups: names}
		for _, s := range Strategies[1:] {
			b := figure.Bars{Name: string(s)}
			for _, v := range r.variantsOf(Forecaster) {
				e := m.estimate(r.of(s, v.Setting))
				b.Values, b.Deviations = append(b.Values, e.Mean), append(b.Deviations, e.Half)
			}
			panel.Bars = append(panel.Bars, b)
		}
		f.Rows = append(f.Rows, []figure.Panel{panel})
	}
	return f
}

func (r *results) variantsOf(factor string) (list []variant) {
	for _, v := range r.variants {
		if v.factor == factor {
			list = append(list, v)
		}
	}
	return list
}

// week draws how many hosts are on, in use and off in a week of the first run. This is the second
// week if there are two, since all hosts are on when the first begins.
func (r *results) week() figure.Figure {
	begin := int64(0)
	if r.demands[0].seconds >= 14*day {
		begin = 7 * day
	}
	f := figure.Figure{Width: 10, Height: 7}
	for _, s := range Strategies[1:] {
		moments := r.of(s, r.options.Base)[0].week
		panel := figure.Panel{Title: string(s), X: figure.Axis{Label: "day"}, Y: figure.Axis{Label: "hosts", FromZero: true}}
		for _, level := range []struct {
			name string
			of   func(m *moment) int64
		}{
			{"on", func(m *moment) int64 { return m.on }},
			{"in use", func(m *moment) int64 { return m.inUse }},
			{"off", func(m *moment) int64 { return m.off }},
		} {
			panel.Lines = append(panel.Lines, figure.Line{Name: level.name, Step: true, Points: steps(moments, begin, begin+7*day, level.of)})
		}
		f.Rows = append(f.Rows, []figure.Panel{panel})
	}
	return f
}

// steps returns the values between the seconds begin and end, where they change, over the time in
// days.
func steps(moments []moment, begin, end int64, of func(m *moment) int64) (points []figure.Point) {
	put := func(at int64, y float64) { points = append(points, figure.Point{X: float64(at) / float64(day), Y: y}) }
	last := 0.0
	for i := range moments {
		m := &moments[i]
		switch y := float64(of(m)); {
		case m.at >= end:
		case m.at <= begin:
			points, last = nil, y
			put(begin, y)
		case y != last:
			last = y
			put(m.at, y)
		}
	}
	put(min(end, max(begin, moments[len(moments)-1].at)), last)
	return points
}

// figures adds all figures to a report.
func (r *results) figures(report *sim.Report) {
	report.Heading(2, "Pictures")
	report.Figure("energy-strategies", "The saved share of the idle core-hours, how long requests wait, and the energy used, by strategy. "+
		"The lines on the bars are the 95 % intervals.", r.strategies())
	captions := map[string]string{
		Share: "Savings and waits, as more of the requests are known ahead. Switch-off alone knows of none.",
		Horizon: "The same against how far ahead hosts are woken for reservations. Where boots take longer than the horizon, the longest of a host's last " +
			"boots counts instead, without a margin, so that some reservations begin late.",
		Idleness: "The same against how long a host must have been idle.",
		Boot:     "The same against the boot time.",
	}
	for _, factor := range r.options.Sweeps {
		if factor == Forecaster {
			report.Figure("energy-forecaster", "The same by how demand is forecast.", r.forecasters())
			continue
		}
		report.Figure("energy-"+factor, captions[factor], r.sweepFigure(factor))
	}
	report.Figure("energy-week", "A week of hosts in the first run, by strategy: how many are on (those that stop or boot among them), in use, and off.", r.week())
}
