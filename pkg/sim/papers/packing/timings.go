// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// growth lists the sizes for which MCB8 alone is timed.
var growth = []struct{ hosts, tasks int }{{64, 500}, {256, 4096}, {1024, 16384}}

// grown is the mean run time of MCB8 on instances of one size.
type grown struct {
	hosts, tasks, instances int
	seconds                 float64
}

// grow times MCB8 alone, one instance after the other, on all slacks and spreads. For large sizes
// it uses a fifth of the combinations, in which each slack and each spread occurs.
func (o Options) grow(ctx context.Context) (list []grown, err error) {
	for _, size := range growth {
		g := grown{hosts: size.hosts, tasks: size.tasks}
		for i, spec := range specs(Spec{Hosts: size.hosts, Scaled: true}, size.tasks) {
			if size.tasks > 1000 && i%5 > 0 {
				continue
			}
			p := spec.Instance(sim.Chance(o.Seed, "growth", size.hosts, i))
			one, err := o.time(ctx, p, packing.Tools{}, "mcb8")
			if err != nil {
				return nil, err
			}
			g.seconds += one.seconds
			g.instances++
		}
		g.seconds /= float64(g.instances)
		list = append(list, g)
	}
	return list, nil
}

// tellTimings adds the run times to the report. They are in files of their own, because they differ
// between executions.
func (r *results) tellTimings(report *sim.Report) {
	report.Heading(2, "Figures 5, 10, 14, 18 and 22: run times")
	if !r.Timings {
		report.Text("Not measured: such times depend on the machine and differ each time. The option timings measures them.")
		return
	}
	report.Text("Without the second phase, as in the paper, and of the machine on which this ran, with as many runs side by side as it has processors; of what takes less than 5 ms the least of three. This section, its figures and timings.csv are not the same twice. The paper's machine had a Xeon of 3.2 GHz.")
	t := sim.Table{Columns: []string{"set", "algorithm", "tasks", "mean, ms", "instances"}}
	for _, s := range r.sets() {
		if s.name == smallDrawn || s.name == largeDrawn {
			continue
		}
		for _, name := range s.algorithms {
			for _, tasks := range along(r.trials[s.name], func(t trial) float64 { return float64(t.Tasks) }) {
				value, n := mean(where(r.trials[s.name], func(t trial) bool { return float64(t.Tasks) == tasks }), seconds, name)
				t.Add(s.name, label(name), tasks, fmt.Sprintf("%.4f", 1000*value), n)
			}
		}
	}
	report.File("timings.csv", t)
	report.Table(r.printedTimes())
	for _, p := range r.plates() {
		if p.overTasks {
			report.Figure(p.name(), fmt.Sprintf("Figure %d. %s over the number of tasks.", p.number, p.title), figure.Figure{Width: 7, Height: 4, Rows: [][]figure.Panel{{r.panel(p)}}})
		}
	}
	larger := sim.Table{Columns: []string{"hosts", "tasks", "MCB8, mean in ms", "instances"}}
	for _, g := range r.growth {
		larger.Add(g.hosts, g.tasks, fmt.Sprintf("%.2f", 1000*g.seconds), g.instances)
	}
	report.Text("MCB8 by itself on larger instances, over all slacks and spreads:")
	report.Table(larger)
}

// printedTimes returns a table of the run times in the paper beside those measured here. The
// machines differ, so it has no verdicts.
func (r *results) printedTimes() sim.Table {
	slowest := func(set string, tasks int, names ...string) float64 {
		most := 0.0
		for _, name := range names {
			value, _ := mean(where(r.trials[set], func(t trial) bool { return tasks == 0 || t.Tasks == tasks }), seconds, name)
			most = max(most, 1000*value)
		}
		return most
	}
	t := sim.Table{Columns: []string{"the paper", "here"}}
	t.Add("Small set: all MCB algorithms under 0.18 ms.", fmt.Sprintf("at most %.3f ms", slowest(smallScaled, 0, mcbs...)))
	t.Add("Small set: the exact solution 28.7 s in the mean.", fmt.Sprintf("%.2f ms, by branch and bound", slowest(smallScaled, 0, exact)))
	if r.Solver != nil {
		t.Add("Small set: RRND and RRNZ a little over 2 ms.", fmt.Sprintf("%.1f ms, most of it to start glpsol", slowest(smallScaled, 0, roundings...)))
	}
	if r.Large > 0 {
		t.Add("500 tasks: all MCB algorithms under 500 ms.", fmt.Sprintf("at most %.2f ms; MCB8 %.2f ms", slowest(largeScaled, 500, mcbs...), slowest(largeScaled, 500, "mcb8")))
		t.Add("500 tasks: greedy algorithms 15 to 20 ms.", fmt.Sprintf("GR and SG at most %.2f ms; GB and SGB, which backtrack, %.1f ms", slowest(largeScaled, 500, "gr", "sg"), slowest(largeScaled, 500, "gb", "sgb")))
	}
	if r.Parallel > 0 {
		t.Add("Parallel jobs, 500 tasks: SG is faster than MCB8 by a factor of 32.", fmt.Sprintf("by a factor of %.1f", slowest(parallelScaled, 500, "mcb8")/max(1e-9, slowest(parallelScaled, 500, "sg"))))
	}
	return t
}
