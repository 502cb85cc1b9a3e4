// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Movable compares movable reservations with the seven policies on the jobs of the paper, at several loads. Its Load is not used.
type Movable struct {
	Options
	// Notice is the notice of the movable reservations, in seconds.
	Notice int64
}

// MovableDefaults returns the options of the paper on its smallest machine, on which all comes out as on the paper's, with
// half as many jobs in four times as many runs, since the differences are small.
func MovableDefaults() Movable {
	o := Defaults()
	o.Hosts, o.Jobs, o.Runs = smallest, o.Jobs/2, 4*o.Runs
	return Movable{Options: o, Notice: 60}
}

// Check returns a fault that names the first option outside its range.
func (o Movable) Check() error {
	if o.Notice < 1 || o.Notice > mostNotice {
		return fault.Field("notice", "is %d s; it must be from 1 to %d s", o.Notice, mostNotice)
	}
	return o.Options.Check()
}

const mostNotice = 100 * 366 * 24 * 3600

// loads are the compared loads: the share of the machine that would be busy if all jobs were accepted.
var loads = []float64{0.6, 0.8, 1, 1.2, 1.4}

// way is how the requests of a run are booked: by a policy, with or without a notice.
type way struct {
	load   float64
	policy calendar.Policy
	notice int64
}

// comparison has the outcomes of all runs.
type comparison struct {
	Movable
	outcomes map[way][]outcome
	bounds   map[float64][]float64 // the largest acceptance rate that may be possible, by load and run
}

// basis is the policy with which movable reservations are booked.
const basis = calendar.PolicyPEWorstFit

// Run implements sim.Experiment.
func (o Movable) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	var ways []way
	for _, load := range loads {
		for _, p := range calendar.PaperPolicies {
			ways = append(ways, way{load, p, 0})
		}
		ways = append(ways, way{load, basis, o.Notice})
	}
	c := &comparison{Movable: o, bounds: make(map[float64][]float64)}
	var err error
	c.outcomes, err = sim.Grid(ctx, ways, o.Runs, progress, func(ctx context.Context, w way, run int) (outcome, error) {
		return trial(ctx, o.Hosts, w.policy, w.notice, o.requestsAt(w.load, run))
	})
	if err != nil {
		return nil, err
	}
	for _, load := range loads {
		for run := range o.Runs {
			requests := o.requestsAt(load, run)
			c.bounds[load] = append(c.bounds[load], float64(mostAccepted(o.Hosts, requests))/float64(len(requests)))
		}
	}
	return c.report(), nil
}

// requestsAt returns the requests of a run at a load.
func (o Movable) requestsAt(load float64, run int) []request {
	s := usual
	s.Arrivals = o.Arrivals
	o.Load = 0
	s.ArrivalFactor = load / o.load()
	return o.requests(s, run)
}

// The measures of the comparison, beside the acceptance.
var (
	work  = measure{"accepted work", "accepted hosts × seconds (share of those asked for)", true, func(o outcome) float64 { return o.Work }}
	moves = measure{"moves", "moves of an accepted request", false, func(o outcome) float64 { return o.Moves }}
)

func (c *comparison) values(m measure, w way) []float64 { return sim.Each(c.outcomes[w], m.of) }

// best returns the policy with the largest mean of a measure at a load.
func (c *comparison) best(m measure, load float64) way {
	ways := make([]way, len(calendar.PaperPolicies))
	for i, p := range calendar.PaperPolicies {
		ways[i] = way{load, p, 0}
	}
	return slices.MaxFunc(ways, func(a, b way) int {
		return cmp.Compare(sim.Mean(c.values(m, a)).Mean, sim.Mean(c.values(m, b)).Mean)
	})
}

func (c *comparison) movable(load float64) way { return way{load, basis, c.Notice} }

// gain estimates by how much movable reservations exceed the best policy, run by run.
func (c *comparison) gain(m measure, load float64) sim.Estimate {
	return sim.Mean(sim.Differences(c.values(m, c.movable(load)), c.values(m, c.best(m, load))))
}

func (c *comparison) report() *sim.Report {
	report := sim.NewReport("Movable reservations beside the seven policies")
	report.Results = c.table()
	report.Text("Movable reservations on the jobs of Li et al. (arXiv 1203.0740), section 6. Every request went through the booking code of the service, on a virtual clock. Each accepted request was checked after each of its moves: its hosts, its duration, its ready time and its deadline. None was broken; the run would have failed.")
	report.Heading(2, "Setup")
	report.List(
		fmt.Sprintf("%d hosts; %d jobs a run; %d runs of each load and policy, with seed %d. Arrivals: %s", c.Hosts, c.Jobs, c.Runs, c.Seed, arrivalsInWords[c.Arrivals]),
		"Sizes, durations, ready times and deadlines are those of `simulate deadline` at UMed 7 and {3,3}. The load is the share of the machine that would be busy if all were accepted.",
		fmt.Sprintf("Movable: each request with a window that is longer than its duration has a notice of %d s, and the policy %s chooses its first start.", c.Notice, basis),
		"Bound: no schedule accepts more, not even one that knows all jobs beforehand, interrupts them and moves them between hosts. In each interval of time the jobs whose ready time and deadline lie in it have no more hosts × seconds than the machine; the rejections of intervals that do not overlap add up. It is not tight.",
		"Intervals are of 95 % over the runs (Student's t). Differences are compared run by run.",
	)
	report.Heading(2, "The goals")
	c.tellFindings(report)
	c.show(report, acceptance, "figure-acceptance")
	c.show(report, work, "figure-work")
	return report
}

// tellFindings judges the goals.
func (c *comparison) tellFindings(report *sim.Report) {
	var verdicts, clear []sim.Verdict
	var seen, seenClear []string
	for _, load := range loads {
		gain := c.gain(acceptance, load)
		text := fmt.Sprintf("%.1f: %s over %s", load, gain.Format(4), paperName[c.best(acceptance, load).policy])
		verdicts, seen = append(verdicts, sim.HeldIf(gain.Mean >= 0)), append(seen, text)
		if load >= 0.8 && load <= 1.2 {
			clear, seenClear = append(clear, sim.Positive(gain)), append(seenClear, text)
		}
	}
	report.Findings("the goal", []sim.Finding{
		{Claim: "At each load, movable reservations accept at least as many requests as the best of the seven policies", Verdict: sim.Worst(verdicts...), Seen: strings.Join(seen, "; ")},
		{Claim: "At loads from 0.8 to 1.2 they accept more, by more than the interval of the difference", Verdict: sim.Worst(clear...), Seen: strings.Join(seenClear, "; ")},
	})
}

// show draws a measure over the load, with a table.
func (c *comparison) show(report *sim.Report, m measure, name string) {
	report.Heading(2, fmt.Sprintf("The %s over the load", m.name))
	panel := figure.Panel{X: figure.Axis{Label: "load"}, Y: figure.Axis{Label: m.axis, Share: m.share}, LegendBeside: true}
	line := func(name string, at func(load float64) float64) {
		l := figure.Line{Name: name}
		for _, load := range loads {
			l.Points = append(l.Points, figure.Point{X: load, Y: at(load)})
		}
		panel.Lines = append(panel.Lines, l)
	}
	line("movable", func(load float64) float64 { return sim.Mean(c.values(m, c.movable(load))).Mean })
	for _, p := range calendar.PaperPolicies {
		line(paperName[p], func(load float64) float64 { return sim.Mean(c.values(m, way{load, p, 0})).Mean })
	}
	if m.name == acceptance.name {
		line("bound", func(load float64) float64 { return sim.Mean(c.bounds[load]).Mean })
	}
	report.Figure(name, "Means over the runs.", figure.Figure{Width: 7, Height: 4.5, Rows: [][]figure.Panel{{panel}}})
	numbers := sim.Table{Columns: []string{"load", "best policy", "its " + m.name, "movable", "difference", "moves of a request"}}
	if m.name == acceptance.name {
		numbers.Columns = append(numbers.Columns, "bound", "left to the bound")
	}
	for _, load := range loads {
		best, moved := c.best(m, load), c.movable(load)
		row := []any{
			load, paperName[best.policy], sim.Mean(c.values(m, best)).Format(4), sim.Mean(c.values(m, moved)).Format(4), c.gain(m, load).Format(4),
			sim.Mean(c.values(moves, moved)).Format(4),
		}
		if m.name == acceptance.name {
			row = append(row, sim.Mean(c.bounds[load]).Format(4), sim.Mean(sim.Differences(c.bounds[load], c.values(m, moved))).Format(4))
		}
		numbers.Add(row...)
	}
	report.Table(numbers)
}

// table returns the means of all loads and ways.
func (c *comparison) table() sim.Table {
	t := sim.Table{Columns: []string{"arrivals", "load", "policy", "notice", "measure", "mean", "half_width_95", "runs"}}
	for _, load := range loads {
		ways := []way{c.movable(load)}
		for _, p := range calendar.PaperPolicies {
			ways = append(ways, way{load, p, 0})
		}
		for _, w := range ways {
			for _, m := range []measure{acceptance, work} {
				e := sim.Mean(c.values(m, w))
				t.Add(c.Arrivals, load, w.policy, w.notice, strings.ReplaceAll(m.name, " ", "_"), e.Mean, e.Half, e.Runs)
			}
		}
		e := sim.Mean(c.bounds[load])
		t.Add(c.Arrivals, load, "bound", 0, "acceptance_rate", e.Mean, e.Half, e.Runs)
	}
	return t
}
