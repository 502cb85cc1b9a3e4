// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// week draws the share of VCPUs in use in each hour of a week of the first run.
func (o Options) week(c compared) figure.Figure {
	chosen, _ := c.named(o.Costs[0])
	base, _ := c.named(without)
	panel := figure.Panel{X: figure.Axis{Time: true, Label: "time of the simulation (UTC)"}, Y: figure.Axis{Label: "VCPUs in use, share", FromZero: true, Share: true}}
	from := 24 * o.WarmUp
	to := min(24*o.Days, from+7*24)
	line := func(name string, used func(h int) float64) {
		l := figure.Line{Name: name, Step: true}
		for h := from; h < to; h++ {
			l.Points = append(l.Points, figure.Point{X: float64(sim.Second(int64(h) * hour)), Y: used(h) / hour / o.vcpus()})
		}
		l.Points = append(l.Points, figure.Point{X: float64(sim.Second(int64(to) * hour)), Y: l.Points[len(l.Points)-1].Y})
		panel.Lines = append(panel.Lines, l)
	}
	with, alone := chosen.tallies[0].byHour, base.tallies[0].byHour
	line("with preemptible instances", func(h int) float64 { return with[normal][h] + with[spot][h] })
	line("of these the normal ones", func(h int) float64 { return with[normal][h] })
	line("without preemptible instances", func(h int) float64 { return alone[normal][h] })
	return figure.Figure{Width: 11, Height: 4, Rows: [][]figure.Panel{{panel}}}
}

// evictionBars draws the evictions and their losses by setting.
func (o Options) evictionBars(c compared) figure.Figure {
	drawing := figure.Figure{Width: 10, Height: 7.5}
	for n, shown := range []struct{ measure, label string }{
		{evictions, "evictions per day"}, {lostWork, "VCPU-hours that victims had run, per day"},
		{"evicted", "share of preemptible instances evicted"}, {unpaidWork, "VCPU-hours not paid for, per day"},
	} {
		m := measureOf(shown.measure)
		panel := figure.Panel{Y: figure.Axis{Label: shown.label, Share: m.unit == "share of preemptible"}}
		bars := figure.Bars{}
		for _, one := range c.main {
			if one.cost == "" {
				continue
			}
			e := sim.Mean(one.values(o, m))
			panel.Groups = append(panel.Groups, strings.ReplaceAll(one.name, "_", "\n"))
			bars.Values, bars.Deviations = append(bars.Values, e.Mean), append(bars.Deviations, e.Half)
		}
		panel.Bars = []figure.Bars{bars}
		if n%2 == 0 {
			drawing.Rows = append(drawing.Rows, nil)
		}
		row := &drawing.Rows[len(drawing.Rows)-1]
		*row = append(*row, panel)
	}
	return drawing
}

// shareLines draws how much is lost and how much is used over the share of preemptible requests.
func (o Options) shareLines(c compared) figure.Figure {
	var row []figure.Panel
	for _, shown := range []struct {
		measure string
		label   string
		share   bool
	}{
		{lostWork, "VCPU-hours that victims had run, per day", false}, {useful, "VCPUs in use for what was not evicted, share", true},
	} {
		m := measureOf(shown.measure)
		panel := figure.Panel{X: figure.Axis{Label: "share of requests that are preemptible"}, Y: figure.Axis{Label: shown.label, FromZero: !shown.share, Share: shown.share}}
		for _, cost := range o.Costs {
			line := figure.Line{Name: cost}
			for _, one := range c.overShares(cost) {
				values := one.values(o, m)
				if values == nil {
					continue
				}
				e := sim.Mean(values)
				line.Points, line.Deviations = append(line.Points, figure.Point{X: one.share, Y: e.Mean}), append(line.Deviations, e.Half)
			}
			if len(line.Points) > 1 {
				panel.AddLine(line)
			}
		}
		row = append(row, panel)
	}
	return figure.Figure{Width: 13, Height: 4.5, Rows: [][]figure.Panel{row}}
}

// lifeLines draws the share of preemptible instances that have not been evicted, over the hours
// since their start.
func (o Options) lifeLines(c compared) figure.Figure {
	const longest = 48
	panel := figure.Panel{X: figure.Axis{Label: "hours since the instance began to run", FromZero: true}, Y: figure.Axis{Label: "not evicted until then, share", FromZero: true, Share: true}}
	for _, one := range c.main {
		if one.cost == "" {
			continue
		}
		line := figure.Line{Name: one.name, Step: true}
		for h, left := range one.survival() {
			if h <= longest {
				line.Points = append(line.Points, figure.Point{X: float64(h), Y: left})
			}
		}
		panel.AddLine(line)
	}
	return figure.Figure{Width: 11, Height: 4.5, Rows: [][]figure.Panel{{panel}}}
}

// survival returns the survival (see the function survival) of the instances of all runs together.
func (c outcome) survival() []float64 {
	var finished, evicted []int64
	for _, t := range c.tallies {
		if finished == nil {
			finished, evicted = slices.Clone(t.finished), slices.Clone(t.evicted)
			continue
		}
		for h := range finished {
			finished[h] += t.finished[h]
			evicted[h] += t.evicted[h]
		}
	}
	return survival(finished, evicted)
}

// measureOf returns the measure with a name.
func measureOf(name string) measure {
	all := measures()
	return all[slices.IndexFunc(all, func(m measure) bool { return m.name == name })]
}

// latencyBars draws Figure 2 with a panel for each number of hosts.
func latencyBars(all []timing) figure.Figure {
	var row []figure.Panel
	for _, one := range all {
		if len(row) == 0 || row[len(row)-1].Title != hostsOf(one) {
			row = append(row, figure.Panel{
				Title: hostsOf(one), Y: figure.Axis{Label: "time to schedule an instance, µs"}, Groups: []string{"empty,\nnormal", "empty,\npreemptible", "full,\nnormal"},
			})
		}
		panel := &row[len(row)-1]
		at := slices.IndexFunc(panel.Bars, func(b figure.Bars) bool { return b.Name == one.contender })
		if at < 0 {
			at = len(panel.Bars)
			panel.Bars = append(panel.Bars, figure.Bars{Name: one.contender, Values: make([]float64, len(scenes)), Deviations: make([]float64, len(scenes))})
		}
		group := slices.IndexFunc(scenes, func(s scene) bool { return s.name == one.scene })
		panel.Bars[at].Values[group], panel.Bars[at].Deviations[group] = one.mean, one.deviation
	}
	if half := len(row) / 2; len(row) > 2 && len(row)%2 == 0 {
		return figure.Figure{Width: 4.6 * float64(half), Height: 7, Rows: [][]figure.Panel{row[:half], row[half:]}}
	}
	return figure.Figure{Width: 4.6 * float64(len(row)), Height: 3.6, Rows: [][]figure.Panel{row}}
}

func hostsOf(t timing) string { return fmt.Sprintf("%d hosts", t.hosts) }
