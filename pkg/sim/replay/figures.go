// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

const (
	// drawn is the largest number of settings with a line or bar for each in one figure.
	drawn = 6
	// steps is the largest number of values of a line over time.
	steps = 128
)

// writeFigures adds the figures that compare the settings.
func writeFigures(r *sim.Report, results []result) {
	r.Heading(2, "Figures")
	some, note := results, ""
	if len(results) > drawn {
		some, note = results[:drawn], fmt.Sprintf(" The first %d settings are shown.", drawn)
	}
	if f, ok := acceptance(results); ok {
		r.Figure("acceptance", "Which share of the jobs was accepted under each setting.", f)
	}
	if f, ok := waits(some); ok {
		r.Figure("waits", "For how long jobs waited that were not reserved for a start: how many of a hundred of those submitted. Bars stand in the order of the legend."+note, f)
	}
	if f, ok := slowdowns(results); ok {
		r.Figure("slowdown", "How long jobs waited and how much longer than their run time they took, under each setting that accepted any."+spread(f), f)
	}
	if f, ok := utilization(some); ok {
		r.Figure("utilization", "Which share of the hosts ran a job over time. Each panel has its own scale."+note, f)
	}
	if f, ok := power(results); ok {
		r.Figure("energy", "The energy of the hosts, and for how long they were off, under each setting.", f)
	}
}

// panelOf draws measures as bars, in one group for each setting. It returns false if no measure has
// values.
func panelOf(results []result, title, label string, keys []string, names []string) (figure.Panel, bool) {
	p := figure.Panel{Title: title, Y: figure.Axis{Label: label, FromZero: true}}
	for i := range results {
		p.Groups = append(p.Groups, wrapped(results[i].setting.Name))
	}
	for i, key := range keys {
		for k := range measures {
			if measures[k].key != key {
				continue
			}
			if values, ok := measures[k].all(results); ok {
				p.Bars = append(p.Bars, figure.Bars{Name: names[i], Values: values})
			}
		}
	}
	return p, len(p.Bars) > 0
}

// wrapped breaks a name after a comma, so that it fits below a bar.
func wrapped(name string) string {
	for i := range name {
		if name[i] == ',' && i+2 < len(name) && name[i+1] == ' ' {
			return name[:i+1] + "\n" + name[i+2:]
		}
	}
	return name
}

// width returns the width, in inches, of a figure with a group of bars for each setting.
func width(results []result) float64 { return min(16, 4+1.1*float64(len(results))) }

func acceptance(results []result) (figure.Figure, bool) {
	p, ok := panelOf(results, "", "share of the jobs accepted", []string{"acceptance_reserved", "acceptance_others"}, []string{"reservations", "other jobs"})
	return figure.Figure{Width: width(results), Height: 4, Rows: [][]figure.Panel{{p}}}, ok
}

// spread returns a sentence for a figure in which some bars are hardly visible beside others;
// otherwise it returns "".
func spread(f figure.Figure) string {
	const decades = 100
	for _, row := range f.Rows {
		for _, bars := range row[0].Bars {
			if most := slices.Max(bars.Values); slices.ContainsFunc(bars.Values, func(v float64) bool { return v > 0 && v < most/decades }) {
				return fmt.Sprintf(" Some values are more than %d times as large as others: the table has the small ones.", decades)
			}
		}
	}
	return ""
}

func slowdowns(results []result) (figure.Figure, bool) {
	results = slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.tally.waits.n == 0 })
	if len(results) == 0 {
		return figure.Figure{}, false
	}
	wait, ok := panelOf(results, "Wait", "hours", []string{"mean_wait", "p95_wait"}, []string{"mean", "95 % wait at most"})
	if !ok {
		return figure.Figure{}, false
	}
	slow, ok := panelOf(results, "Bounded slowdown", "(wait + run time) / run time", []string{"bounded_slowdown"}, []string{""})
	return figure.Figure{Width: width(results), Height: 7, Rows: [][]figure.Panel{{wait}, {slow}}}, ok
}

func power(results []result) (figure.Figure, bool) {
	takes, ok := panelOf(results, "Energy", "kWh", []string{"energy"}, []string{""})
	any := false
	for i := range results {
		any = any || results[i].power != nil
	}
	if !ok || !any {
		return figure.Figure{}, false
	}
	off, _ := panelOf(results, "Hosts off", "host-hours", []string{"host_hours_off"}, []string{""})
	return figure.Figure{Width: width(results), Height: 7, Rows: [][]figure.Panel{{takes}, {off}}}, true
}

// waitClasses are the classes of waits, with their upper bounds in seconds.
var waitClasses = []struct {
	name string
	up   int64
}{
	{"none", 0}, {"≤ 1 min", 60}, {"≤ 10 min", 600}, {"≤ 1 h", 3600}, {"≤ 6 h", 6 * 3600}, {"≤ 1 d", 24 * 3600}, {"≤ 3 d", 3 * 24 * 3600}, {"longer", 1 << 50},
}

// waits draws the share of jobs in each class of waits; refused jobs form a class of their own.
func waits(results []result) (figure.Figure, bool) {
	p := figure.Panel{X: figure.Axis{Label: "wait"}, Y: figure.Axis{Label: "% of the jobs submitted", FromZero: true}}
	for _, c := range waitClasses {
		p.Groups = append(p.Groups, c.name)
	}
	p.Groups = append(p.Groups, "refused")
	for i := range results {
		t := results[i].tally
		if t.others.jobs == 0 {
			return figure.Figure{}, false
		}
		share := func(n int64) float64 { return 100 * float64(n) / float64(t.others.jobs) }
		bars, before := figure.Bars{Name: results[i].setting.Name}, int64(0)
		for _, c := range waitClasses {
			n := t.waits.upTo(c.up)
			bars.Values = append(bars.Values, share(n-before))
			before = n
		}
		bars.Values = append(bars.Values, share(t.others.jobs-t.others.accepted))
		p.Bars = append(p.Bars, bars)
	}
	return figure.Figure{Width: 12, Height: 5.5, Rows: [][]figure.Panel{{p}}}, true
}

// utilization draws the share of hosts in use over time, one panel for each setting.
func utilization(results []result) (figure.Figure, bool) {
	f := figure.Figure{Width: 10, Height: 1 + 1.8*float64(len(results))}
	var end float64 // of the last panel, so that all have the same axis
	for i := range results {
		all, wide := results[i].tally.used.merged(steps)
		if len(all) == 0 {
			return f, false
		}
		line := figure.Line{Step: true}
		for k, used := range all {
			line.Points = append(line.Points, figure.Point{
				X: float64(int64(k)*wide) / (24 * hour), Y: float64(used) / (float64(wide) * float64(results[i].hosts)),
			})
		}
		end = max(end, float64(int64(len(all))*wide)/(24*hour))
		f.Rows = append(f.Rows, []figure.Panel{{
			Title: results[i].setting.Name, Y: figure.Axis{Label: "share in use", FromZero: true}, Lines: []figure.Line{line},
		}})
	}
	for _, row := range f.Rows {
		line := &row[0].Lines[0]
		last := line.Points[len(line.Points)-1].X
		if len(line.Points) > 1 {
			last += line.Points[1].X
		}
		line.Points = append(line.Points, figure.Point{X: min(last, end)}, figure.Point{X: end})
	}
	f.Rows[len(f.Rows)-1][0].X.Label = "days since the first submission"
	return f, true
}
