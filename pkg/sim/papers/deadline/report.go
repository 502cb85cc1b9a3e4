// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Run implements sim.Experiment: it repeats figures 2 to 7 of the paper.
func (o Options) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	r, err := o.run(ctx, distinct(append(o.scans(), o.contrast())...), progress)
	if err != nil {
		return nil, err
	}
	return r.report(), nil
}

// report writes what was run and the results.
func (r *results) report() *sim.Report {
	report := sim.NewReport("Reservations with deadlines: seven policies")
	report.Results = r.table()
	report.Text("The evaluation of Li et al., \"Resource Availability-Aware Advance Reservation for Parallel Jobs with Deadlines\" (arXiv 1203.0740), section 6, figures 2 to 7. Every request went through the booking code of the service, on a virtual clock.")
	r.tellRun(report)
	r.tellFindings(report)
	for _, s := range r.scans() {
		for i, m := range []measure{acceptance, slowdown} {
			r.show(report, s, m, fmt.Sprintf("Figure %d", s.figures[i]), fmt.Sprintf("figure-%d-%s", s.figures[i], s.name))
		}
	}
	r.tellArrivals(report)
	r.tellChoices(report)
	return report
}

// table returns the means of all settings and policies.
func (r *results) table() sim.Table {
	t := sim.Table{Columns: []string{"arrivals", "umed", "arrival_factor", "artime_factor", "deadline_factor", "policy", "measure", "mean", "half_width_95", "runs"}}
	for _, s := range distinct(append(r.scans(), r.contrast())...) {
		for _, p := range calendar.PaperPolicies {
			for _, m := range []measure{acceptance, slowdown} {
				e := r.mean(m, s, p)
				t.Add(s.Arrivals, s.UMed, s.ArrivalFactor, s.Flexibility, s.Flexibility, p, strings.ReplaceAll(m.name, " ", "_"), e.Mean, e.Half, e.Runs)
			}
		}
	}
	return t
}

func (r *results) tellRun(report *sim.Report) {
	report.Heading(2, "Setup")
	report.List(
		fmt.Sprintf("%d hosts, each one processing element of the paper; %d jobs a run; %d runs of each setting and policy, with seed %d.", r.Hosts, r.Jobs, r.Runs, r.Seed),
		fmt.Sprintf("Arrivals: %s The mean load is %.2f at UMed 7 and arrival factor 1, if all were accepted.", arrivalsInWords[r.Arrivals], r.load()),
		"Sizes: two to a two-stage uniform power (ULow 4.5, UMed 5 to 9, UHi 10, Uprob 0.82), rounded to powers of two: 32 to 1,024 of 1,024 hosts, in proportion on other machines.",
		"Durations: 60, 300, 900, 1800, 3600 and 10800 seconds. Ready time = arrival + floor(artime factor × U × duration); deadline = ready time + floor((1 + deadline factor × U) × duration), U uniform between 0 and 1 and drawn again each time.",
		"Acceptance rate: the share of the requests that were accepted. Average slowdown: the mean of (start − ready time + duration) / duration over these.",
		"All policies get the same requests in a run. Intervals are of 95 % over the runs (Student's t). They may be wider than the differences between policies, since a run with many bursts is hard on all of them; so policies are compared run by run.",
	)
	names := sim.Table{Columns: []string{"in the paper", "in requests", "of the feasible starts it chooses the one with"}}
	for _, p := range calendar.PaperPolicies {
		names.Add(paperName[p], p, preference[p])
	}
	report.Table(names)
}

var arrivalsInWords = map[string]string{
	Lublin:  "those of the Lublin-Feitelson model, with bursts and a daily cycle.",
	Poisson: "Poisson, that is, independent of each other.",
}

var preference = map[calendar.Policy]string{
	calendar.PolicyFirstFit:           "the earliest time",
	calendar.PolicyPEBestFit:          "the fewest free hosts",
	calendar.PolicyPEWorstFit:         "the most free hosts",
	calendar.PolicyDurationBestFit:    "the shortest rectangle",
	calendar.PolicyDurationWorstFit:   "the longest rectangle",
	calendar.PolicyPEDurationBestFit:  "the smallest area",
	calendar.PolicyPEDurationWorstFit: "the largest area",
}

func (r *results) tellFindings(report *sim.Report) {
	report.Heading(2, "The paper's statements and the results")
	report.Text("The paper has plots and no numbers. Its statements are checked here by comparisons, of two policies in one setting or of two settings under one policy.")
	list := r.findings()
	report.Text("%d of %d statements held throughout.", sim.CountHeld(list), len(list))
	if r.Runs < 2 {
		report.Text("One run proves nothing: it has no intervals, and its results may be chance.")
	}
	report.Findings("the paper", list)
}

// show draws a scan and adds a table of its numbers.
func (r *results) show(report *sim.Report, s scan, m measure, title, name string) {
	report.Heading(2, fmt.Sprintf("%s: %s over %s", title, m.name, s.axis))
	panel := figure.Panel{X: figure.Axis{Label: s.axis}, Y: figure.Axis{Label: m.axis, Share: m.share}, LegendBeside: true}
	numbers := sim.Table{Columns: []string{s.axis}}
	rows := make([][]any, len(s.settings))
	for i, at := range s.settings {
		rows[i] = []any{s.at(at)}
	}
	for _, p := range calendar.PaperPolicies {
		line := figure.Line{Name: paperName[p]}
		for i, at := range s.settings {
			e := r.mean(m, at, p)
			line.Points = append(line.Points, figure.Point{X: s.at(at), Y: e.Mean})
			if r.Runs > 1 {
				line.Deviations = append(line.Deviations, e.Half)
			}
			rows[i] = append(rows[i], e.String())
		}
		panel.Lines = append(panel.Lines, line)
		numbers.Columns = append(numbers.Columns, paperName[p])
	}
	for _, row := range rows {
		numbers.Add(row...)
	}
	caption := fmt.Sprintf("%s of the seven policies, with arrivals of kind %s.", strings.ToUpper(m.name[:1])+m.name[1:], s.settings[0].Arrivals)
	if r.Runs > 1 {
		caption += " Upright lines are intervals of 95 %"
		if m.share {
			caption += ", as far as they are shares"
		}
		caption += "."
	}
	report.Figure(name, caption, figure.Figure{Width: 7, Height: 4.5, Rows: [][]figure.Panel{{panel}}})
	report.Table(numbers)
}

// tellArrivals compares figure 6 with the same scan under the other kind of arrivals.
func (r *results) tellArrivals(report *sim.Report) {
	other := r.contrast()
	r.show(report, other, acceptance, "Beside the paper", "flexibility-"+other.settings[0].Arrivals)
	scan := scanFlexibility(Lublin).settings
	mild, middle, free := scan[0], scan[len(scan)/2], scan[len(scan)-1]
	lublin, poisson := r.gain(mild, free), r.gain(ofPoisson(mild), ofPoisson(free))
	report.Text("From {1,1} to {5,5} the acceptance of PE_W changes by %s with arrivals of the Lublin-Feitelson model, and by %s with Poisson arrivals of the same mean load.", lublin, poisson)
	apart := sim.Mean(sim.Differences(r.gains(mild, free), r.gains(ofPoisson(mild), ofPoisson(free))))
	switch clear := r.Runs > 1 && math.Abs(apart.Mean) > apart.Half; {
	case !clear || apart.Mean > 0 && lublin.Mean <= lublin.Half:
		report.Text("These runs do not tell whether the rise in figure 6 of the paper depends on how jobs arrive.")
		return
	case apart.Mean < 0:
		report.Text("So how jobs arrive does not explain, here, why acceptance rises with flexibility in figure 6 of the paper.")
		return
	}
	report.Text("Run by run the first is greater by %s. So the rise in figure 6 of the paper depends on how jobs arrive. Bursts are the likely reason: while one lasts, requests that can wait for its end find a place and the others do not, and arrivals that do not depend on each other have few bursts to wait out. This was not tested separately, since the two kinds differ in their daily cycle too. The rise is %s from {1,1} to {3,3}, and %s from there to {5,5}. Which burst lasts how long follows from the model's constants, and those for LANL-CM5 are not known (see below).", apart, r.gain(mild, middle), r.gain(middle, free))
}

func ofPoisson(s setting) setting {
	s.Arrivals = Poisson
	return s
}

// gain estimates how much the acceptance of PE_W grows from one setting to another.
func (r *results) gain(from, to setting) sim.Estimate {
	return sim.Mean(r.gains(from, to))
}

// gains returns the growth of gain for each run.
func (r *results) gains(from, to setting) []float64 {
	return sim.Differences(r.values(acceptance, to, calendar.PolicyPEWorstFit), r.values(acceptance, from, calendar.PolicyPEWorstFit))
}

// tellChoices describes the assumptions where the paper is silent.
func (r *results) tellChoices(report *sim.Report) {
	report.Heading(2, "Where this differs from the paper, or had to choose")
	report.List(
		"The constants of the Lublin-Feitelson model for LANL-CM5, which the paper used for arrivals and run times, are not in the paper, nor in the program of the model's authors. The program's constants for all jobs of a machine of 128 processors stand in for them. So levels differ from the paper's plots, and orderings are what is compared.",
		"Sizes are divided by 8 before the run times' distribution sees them, since its constants are for 128 processors and the machine has 1,024. The paper took its six durations in proportions that it does not report; here each stands for the run times of the model that are nearest to it.",
		"The paper does not define the end of an availability rectangle that nothing bounds. It ends here at the deadline or at the last known start or end of a reservation, whichever is later. Of the variants that were tried, this one has the paper's three groups.",
		"Feasible starts reach to the deadline less the duration; the paper's text says to the deadline.",
		"All jobs count, as in the paper, also those that find the machine empty at the beginning.",
		"The paper has 95 % intervals and does not state over what. Here they are over runs with other random numbers.",
	)
}
