// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/figure"
)

// plate describes a figure of the paper.
type plate struct {
	number     int
	set, title string
	algorithms []string
	measure    measure
	label      string
	// overTasks is true if the horizontal axis is the number of tasks instead of the slack.
	overTasks bool
}

func (p plate) name() string {
	return fmt.Sprintf("figure-%02d", p.number)
}

func (p plate) along(t trial) float64 {
	if p.overTasks {
		return float64(t.Tasks)
	}
	return t.Slack
}

func (p plate) axis() string {
	if p.overTasks {
		return "tasks"
	}
	return "memory slack (share)"
}

const (
	yieldLabel   = "minimum yield (mean)"
	averageLabel = "average yield (mean)"
	failureLabel = "failure rate (share of instances)"
	timeLabel    = "run time (mean, ms)"
)

// plates returns figures 2 to 22 of the paper, without those of run times if these were not
// measured. There is no Figure 7 (erratum E002-4).
func (r *results) plates() []plate {
	best := slices.Concat([]string{bound}, []string{exact, "mcb8"}, greedies)
	if r.Solver != nil {
		best = append(best, roundings...)
	}
	withBound := append([]string{bound}, mcbs...)
	wide := slices.Concat([]string{bound, "mcb8"}, greedies)
	fast := append([]string{"mcb8"}, greedies...)
	two := []string{"mcb8", "sg"}
	all := []plate{
		{2, smallScaled, "Small set, minimum yield of the MCB algorithms", withBound, minYield, yieldLabel, false},
		{3, smallScaled, "Small set, average yield of the MCB algorithms", mcbs, averageYield, averageLabel, false},
		{4, smallScaled, "Small set, failures of the MCB algorithms", mcbs, failed, failureLabel, false},
		{5, smallScaled, "Small set, run times of the MCB algorithms", mcbs, seconds, timeLabel, true},
		{6, largeScaled, "Large set, minimum yield of the MCB algorithms", withBound, minYield, yieldLabel, false},
		{8, largeScaled, "Large set, average yield of the MCB algorithms", mcbs, averageYield, averageLabel, false},
		{9, largeScaled, "Large set, failures of the MCB algorithms", mcbs, failed, failureLabel, false},
		{10, largeScaled, "Large set, run times of the MCB algorithms", mcbs, seconds, timeLabel, true},
		{11, smallScaled, "Small set, minimum yield", best, minYield, yieldLabel, false},
		{12, smallScaled, "Small set, average yield", best[1:], averageYield, averageLabel, false},
		{13, smallScaled, "Small set, failures", best[1:], failed, failureLabel, false},
		{14, smallScaled, "Small set, run times", fast, seconds, timeLabel, true},
		{15, largeScaled, "Large set, minimum yield", wide, minYield, yieldLabel, false},
		{16, largeScaled, "Large set, average yield", fast, averageYield, averageLabel, false},
		{17, largeScaled, "Large set, failures", fast, failed, failureLabel, false},
		{18, largeScaled, "Large set, run times", fast, seconds, timeLabel, true},
		{19, parallelScaled, "Parallel jobs, minimum yield", append([]string{bound}, two...), minYield, yieldLabel, false},
		{20, parallelScaled, "Parallel jobs, average yield", two, averageYield, averageLabel, false},
		{21, parallelScaled, "Parallel jobs, failures", two, failed, failureLabel, false},
		{22, parallelScaled, "Parallel jobs, run times", two, seconds, timeLabel, true},
	}
	return slices.DeleteFunc(all, func(p plate) bool { return len(r.trials[p.set]) == 0 || p.overTasks && !r.Timings })
}

// panel draws a plate.
func (r *results) panel(p plate) figure.Panel {
	trials := r.trials[p.set]
	panel := figure.Panel{X: figure.Axis{Label: p.axis()}, Y: figure.Axis{Label: p.label, FromZero: p.overTasks || p.label == failureLabel}, LegendBeside: true}
	for _, name := range p.algorithms {
		line := figure.Line{Name: label(name)}
		for _, x := range along(trials, p.along) {
			value, n := mean(where(trials, func(t trial) bool { return p.along(t) == x }), p.measure, name)
			if p.overTasks {
				value *= 1000
			}
			if n > 0 {
				line.Points = append(line.Points, figure.Point{X: x, Y: value})
			}
		}
		if len(line.Points) > 1 {
			panel.AddLine(line)
		}
	}
	return panel
}

// adaptation draws the smallest yield over the budget of the adaptation.
func (r *results) adaptation() figure.Figure {
	lines := []figure.Line{{Name: "bound"}, {Name: "exact"}, {Name: "adapt"}}
	for i, budget := range budgets {
		d := distanceOf(r.changes, i)
		for k, y := range []float64{d.bound, d.exact, d.adapt} {
			lines[k].Points = append(lines[k].Points, figure.Point{X: budget, Y: y})
		}
	}
	panel := figure.Panel{X: figure.Axis{Label: "budget (share of the memory that is there)", FromZero: true}, Y: figure.Axis{Label: yieldLabel}, Lines: lines, LegendBeside: true}
	return figure.Figure{Width: 7, Height: 4, Rows: [][]figure.Panel{{panel}}}
}
