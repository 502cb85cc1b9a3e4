// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// results are the results of all sets.
type results struct {
	Options
	trials  map[string][]trial // by set
	changes []change
	growth  []grown
}

// Run implements sim.Experiment: it repeats tables 1 and 2 and figures 2 to 22 of the paper.
func (o Options) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	r := &results{Options: o}
	var err error
	if o.Timings {
		if r.growth, err = o.grow(ctx); err != nil {
			return nil, fmt.Errorf("measure how MCB8 grows: %w", err)
		}
	}
	if r.trials, err = o.run(ctx, o.sets(), progress); err != nil {
		return nil, err
	}
	if r.changes, err = o.adaptAll(ctx); err != nil {
		return nil, fmt.Errorf("adapt placements: %w", err)
	}
	return r.report(), nil
}

func (r *results) report() *sim.Report {
	report := sim.NewReport("Virtual clusters: how jobs share hosts most fairly")
	report.Results = r.table()
	report.Text("The evaluation of Stillwell, Schanzenbach, Vivien and Casanova, \"Resource allocation using virtual clusters\" (LIP RR 2008-33, arXiv 1006.5376, paper 002), " +
		"sections 4 and 5, with the algorithms that `almanac whatif pack` and the service run. The yield of a job is the share that it gets of the CPU that it could use; the goal is to maximize the smallest yield.")
	r.tellRun(report)
	r.tellFindings(report)
	r.tellTables(report)
	for _, p := range r.plates() {
		if !p.overTasks {
			r.show(report, p)
		}
	}
	r.tellAdaptation(report)
	r.tellTimings(report)
	r.tellChoices(report)
	return report
}

// table returns all means, one row for each set, algorithm, number of tasks and slack.
func (r *results) table() sim.Table {
	t := sim.Table{Columns: []string{"set", "algorithm", "tasks", "slack", "measure", "mean", "instances"}}
	for _, s := range r.sets() {
		for _, name := range append([]string{bound}, s.algorithms...) {
			for _, tasks := range along(r.trials[s.name], func(t trial) float64 { return float64(t.Tasks) }) {
				for _, slack := range along(r.trials[s.name], func(t trial) float64 { return t.Slack }) {
					of := where(r.trials[s.name], func(t trial) bool { return float64(t.Tasks) == tasks && t.Slack == slack })
					for _, m := range []struct {
						name string
						of   measure
					}{{"min_yield", minYield}, {"average_yield", averageYield}, {"failure_rate", failed}} {
						if value, n := mean(of, m.of, name); n > 0 {
							t.Add(s.name, name, tasks, slack, m.name, value, n)
						}
					}
				}
			}
		}
	}
	for i, budget := range budgets {
		if len(r.changes) > 0 {
			d := distanceOf(r.changes, i)
			t.Add("changes", "adapt", 10, 0.3, fmt.Sprintf("min_yield_with_budget_%g", budget), d.adapt, len(r.changes))
			t.Add("changes", exact, 10, 0.3, fmt.Sprintf("min_yield_with_budget_%g", budget), d.exact, len(r.changes))
		}
	}
	return t
}

func (r *results) tellRun(report *sim.Report) {
	report.Heading(2, "Setup")
	var items []string
	for _, s := range r.sets() {
		items = append(items, fmt.Sprintf("%s: %d instances, %d of each of %d specifications, with %s.", s.name, len(r.trials[s.name]), s.instances, len(s.specs), strings.Join(labels(s.algorithms), ", ")))
	}
	report.List(append(items,
		"Small instances have 4 hosts and 6, 8, 10 or 12 tasks, large ones 64 hosts and 100, 250 or 500. The slack of the memory is 0.1 to 0.9, the coefficients of variance of memory and CPU are 0.25 and 0.75 each, "+
			"and the mean need of CPU is 0.5. Needs are normal, drawn again where they are not between 0 and 1.",
		"Drawn memory has the paper's mean, and has the slack in the mean only. Scaled memory has a mean of 0.5, and is then scaled so that each instance has the slack, as in the generator of the authors' later "+
			"paper (genprob.py of flexsched). The paper does not state this, but its count of instances without a placement is nearer to this one. Figures are of scaled instances.",
		"All algorithms of a set get the same instances, which follow from the seed "+fmt.Sprint(r.Seed)+". Means are over the instances that an algorithm has solved, as in the paper.",
	)...)
	if r.Solver == nil {
		why := "there is no solver"
		if r.Missing != nil {
			why = r.Missing.Error()
		}
		report.Text("**RRND and RRNZ were left out**: %s.", why)
	} else {
		report.Text("RRND and RRNZ round the one of many best solutions that glpsol of GLPK returns: with another version of it their results may differ.")
	}
	unproven := 0
	for _, name := range []string{smallScaled, smallDrawn} {
		unproven += len(where(r.trials[name], func(t trial) bool { return t.outcomes[exact].unproven }))
	}
	if unproven > 0 {
		report.Text("Of the exact solutions %d are not proven to be exact: the search was stopped.", unproven)
	}
}

// labels returns the names of algorithms as the paper writes them.
func labels(names []string) (list []string) {
	for _, name := range names {
		list = append(list, label(name))
	}
	return list
}

func label(name string) string {
	if name == exact || name == bound {
		return name
	}
	return strings.ToUpper(name)
}

// tellFindings writes the findings into the report.
func (r *results) tellFindings(report *sim.Report) {
	report.Heading(2, "The paper's statements and the results")
	list := r.findings()
	report.Text("%d of %d statements held.", sim.CountHeld(list), len(list))
	report.Findings("the paper", list)
}

// printed contains the numbers of tables 1 and 2 of the paper, by set and algorithm.
var printed = map[string]map[string]struct{ mean, most float64 }{
	smallScaled: {"mcb8": {1.06, 40.45}, "mcb5": {1.60, 38.67}, "mcb6": {1.83, 37.61}, "mcb7": {3.91, 40.71}, "mcb3": {11.76, 55.73}, "mcb2": {14.21, 48.30}, "mcb1": {14.90, 55.84}, "mcb4": {17.32, 46.95}},
	largeScaled: {"mcb8": {0.09, 3.16}, "mcb5": {0.25, 3.50}, "mcb6": {0.46, 16.68}, "mcb7": {1.04, 48.39}, "mcb3": {4.07, 64.71}, "mcb2": {8.68, 46.68}, "mcb1": {10.97, 73.33}, "mcb4": {14.80, 61.20}},
}

func (r *results) tellTables(report *sim.Report) {
	report.Heading(2, "Tables 1 and 2: percent degradation from the best")
	report.Text("By how many percent the smallest yield is below that of the best algorithm: in the mean and at most over the instances that an algorithm has solved, and in the mean with 100 %% for each that it has not and another one has. " +
		"That last one is nearest to the paper's means: they are \"computed over all instances\", though its maxima are of solved ones only.")
	for _, one := range []struct {
		title string
		sets  []string
	}{{"Table 1, small set", []string{smallScaled, smallDrawn}}, {"Table 2, large set", []string{largeScaled, largeDrawn}}} {
		if len(r.trials[one.sets[0]]) == 0 {
			continue
		}
		report.Heading(3, one.title)
		t := sim.Table{Columns: []string{"algorithm", "the paper: mean / most"}}
		for _, name := range one.sets {
			t.Columns = append(t.Columns, name+": mean / most", "with failures", "solved")
		}
		scaled, drawn := degradations(r.trials[one.sets[0]], mcbs), degradations(r.trials[one.sets[1]], mcbs)
		for _, name := range append(slices.Clone(descending), ascending...) {
			row := []any{strings.ToUpper(name), fmt.Sprintf("%.2f / %.2f", printed[one.sets[0]][name].mean, printed[one.sets[0]][name].most)}
			for _, d := range []degradation{scaled[name], drawn[name]} {
				row = append(row, fmt.Sprintf("%.2f / %.2f", d.mean, d.most), fmt.Sprintf("%.2f", d.all), d.solved)
			}
			t.Add(row...)
		}
		report.Table(t)
	}
}

func (r *results) show(report *sim.Report, p plate) {
	report.Heading(2, fmt.Sprintf("Figure %d: %s", p.number, strings.ToLower(p.title[:1])+p.title[1:]))
	caption := p.title + " over the slack of the memory."
	if p.label != failureLabel {
		caption += " Means are over the instances that each has solved."
	}
	report.Figure(p.name(), caption, figure.Figure{Width: 7, Height: 4, Rows: [][]figure.Panel{{r.panel(p)}}})
}

func (r *results) tellAdaptation(report *sim.Report) {
	if len(r.changes) == 0 {
		return
	}
	report.Heading(2, "Adapting a placement")
	report.Text("Section 6 of the paper bounds what may be moved when a workload changes, and leaves the heuristic to others. The heuristic here keeps the tasks of each host as far as a yield allows, moves away the tasks that are cheapest "+
		"for the CPU that they free, packs these and new tasks with MCB8, and then moves and swaps single tasks while this helps and the budget lasts. It is compared with the exact solution: %d times ten tasks are placed on four hosts by MCB8 (slack 0.3); then all "+
		"needs of CPU are drawn again, and two tasks go and two others come.", len(r.changes))
	t := sim.Table{Columns: []string{"budget", "exact", "adapt", "bound", "moved by adapt", "mean distance, %", "largest, %", "as good as exact"}}
	for i, budget := range budgets {
		d := distanceOf(r.changes, i)
		t.Add(budget, fmt.Sprintf("%.3f", d.exact), fmt.Sprintf("%.3f", d.adapt), fmt.Sprintf("%.3f", d.bound), fmt.Sprintf("%.3f", d.moved), fmt.Sprintf("%.2f", d.mean), fmt.Sprintf("%.1f", d.most), fmt.Sprintf("%d of %d", d.equal, len(r.changes)))
	}
	report.Table(t)
	report.Text("The budget and the moved memory are shares of the memory of the tasks that exist before and after.")
	if !proven(r.changes) {
		report.Text("Not all exact solutions are proven to be exact.")
	}
	report.Figure("adaptation", "The mean smallest yield over the budget. Moving little already brings most of the gain.", r.adaptation())
}

// tellChoices describes the assumptions where the paper is silent.
func (r *results) tellChoices(report *sim.Report) {
	report.Heading(2, "Where this differs from the paper, or had to choose")
	report.List(
		"The smallest yield of a placement is the largest that it allows, not the last value of the search (which is up to 0.001 less), and the bound itself is tried once before the search: else a yield of 1 would never be reported.",
		"The search ends at a width of 0.001, as in the authors' later program. A task that needs as much CPU as memory is in the list of CPU, and where as much is free of both that list comes first.",
		"The degradation of an algorithm is counted over the instances that it has solved, as the maxima of the paper's tables are (E002-5), and beside it as its means seem to be, with failures at 100 %.",
		"The exact solution is found by branch and bound instead of GLPK, with the same results (tested).",
		"Parallel jobs have sizes of the Lublin-Feitelson model from 1 to 64 tasks, with its program's parameters for all jobs; the last one of an instance has as many tasks as are left. The second phase is the heuristic that serves those "+
			"jobs first that need least CPU in sum, not the linear program.",
		"Table 2 is printed inside Figure 7 of the paper (E002-4), so that there is no such figure. Where the paper says BCB8 it means MCB8, and it has SGB for SG in section 5.2 (E002-3).",
	)
}
