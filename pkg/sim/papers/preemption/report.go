// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// report is a sim.Report with the options that it describes.
type report struct {
	*sim.Report
	o Options
}

func (r report) introduce() {
	r.Text("The results of A. López García, E. Fernández del Castillo and I. Campos Plasencia in \"An efficient cloud scheduler design supporting " +
		"preemptible instances\" (Future Generation Computer Systems, 2019), section 4, with the scheduler of this service; and the behavior of a cloud " +
		"with preemptible instances over weeks, which the paper does not cover. Filters, weighers, costs, the choice of victims and the states " +
		"of the hosts are those of the service. The simulation decides nothing by itself.")
	r.List(
		fmt.Sprintf("%d hosts with %v each.", r.o.Hosts, r.o.Host),
		fmt.Sprintf("%d days; the first %d, when the cloud fills up, are not measured.", r.o.Days, r.o.WarmUp),
		fmt.Sprintf("%d runs of each setting, seed %d. Run n of every setting has the same machines at the same times, the same ids, flavors and draws.", r.o.Runs, r.o.Seed),
		"Numbers are means over the runs, with half the width of the 95 % interval of Student's t.",
	)
}

func (r report) snapshots(tables []found) {
	r.Heading(2, "The snapshots of section 4.4")
	r.Text("The scheduler decides on each table of the paper as `almanac whatif schedule` does. Costs are minutes of " +
		"the last, unpaid hour of the cheapest instances of a host whose room is enough. The paper has lost the numbers of its tables and of its section " +
		"4.4.2; they are the third to the sixth here, and the costs that are expected follow from its rule.")
	letters := []string{"A", "B", "C", "D"}
	cheapest := sim.Table{Columns: []string{"table", "request", "host A", "host B", "host C", "host D", "leaves", "in the paper", "as in the paper"}}
	printed := sim.Table{Columns: []string{"table", "cheapest victims", "Algorithm 4 as printed", "fewest preemptible instances", "the paper's victims"}}
	for _, t := range tables {
		row := []any{t.name, sizeNames[t.request]}
		for n := range t.hosts {
			cell := "filtered out"
			if t.minutes[n] != "" {
				cell = t.minutes[n] + ": " + t.cheapest[n]
				r.Results.Add("snapshots", t.name, "", "cost_host_"+letters[n], "minutes", t.minutes[n], "", "")
			}
			row = append(row, cell)
		}
		cheapest.Add(append(row, t.ours.String(), t.paper.String(), sim.HeldIf(t.agrees()))...)
		printed.Add(t.name, t.ours.String(), t.period.String(), t.count.String(), t.paper.String())
	}
	r.Table(cheapest)
	r.Text("Algorithm 4 of the paper ranks a host by the cost of all of its preemptible instances together. As printed it does not reproduce the " +
		"paper's own tables (E001-1), and neither does the number of preemptible instances (E001-2): only the cheapest victims do. Both are " +
		"weighers of the service too, and choose as follows.")
	r.Table(printed)
}

var sizeNames = map[string]string{"S": "small", "M": "medium", "L": "large"}

func (v victims) String() string {
	if v.ids == "" {
		return v.host
	}
	return v.ids + " on " + v.host
}

func (r report) figure2(times []timing) {
	r.Heading(2, "Figure 2: how long scheduling takes")
	if times == nil {
		r.Text("Not measured: such times depend on the machine and differ each time. The option latency measures them.")
		return
	}
	r.Text("%d instances of %v are placed one after the other, as in the paper, on hosts that have room for %d each. Mean and "+
		"standard deviation are in microseconds, of the machine on which this ran: this section and its figure are not the same twice, and "+
		"its numbers are in latency.csv. Where others use the machine at the same time, means are no measure; medians suffer less.", timed, medium, room)
	t := sim.Table{Columns: []string{"hosts", "scheduler", "requests and hosts", "mean, µs", "standard deviation, µs", "median, µs"}}
	for _, one := range times {
		t.Add(one.hosts, one.contender, one.scene, fmt.Sprintf("%.1f", one.mean), fmt.Sprintf("%.1f", one.deviation), fmt.Sprintf("%.1f", one.median))
	}
	r.Table(t)
	r.File("latency.csv", t)
	r.Findings("expected", latencyOrderings(times))
	r.Text("In the paper the second pass of the retrying scheduler costs as much as the first. Here the first pass ends early where there is no room: the " +
		"filter of capacity leaves no host, and there is nothing to weigh.")
	r.Figure("latency", "Time to schedule an instance, mean and one standard deviation on each side. The default scheduler knows no preemptible instances.", latencyBars(times))
}

// weeks reports the simulation of weeks.
func (r report) weeks(from source, c compared) {
	r.Heading(2, "Weeks with preemptible instances")
	r.trace(from)
	r.settingsText()
	r.mainTable(c)
	r.summary(c)
	list := r.o.orderings(c)
	r.Heading(3, "Expectations")
	r.Text("A difference counts if its interval, over the runs with the same machines, does not contain 0. Differences are to " +
		"the named setting, and above 0 if they are as expected.")
	if r.o.Runs < 2 {
		r.Text("One run decides nothing.")
	}
	r.Findings("expected", list)
	r.Text("A cost is least at each choice, not over weeks: an instance that is spared now may have to leave later, when it costs more, and a small instance " +
		"seldom leaves alone. So an ordering may fail although each choice is right; the tests verify each choice.")
	r.wrong(c)
	r.Figure("week", fmt.Sprintf("A week of run 1: the VCPUs in use, means of an hour. Preemptible instances, chosen by %s where they have to leave, "+
		"fill what normal ones leave idle, and make room when these come.", r.o.Costs[0]), r.o.week(c))
	if !slices.ContainsFunc(c.main, func(one outcome) bool { return one.values(r.o, measureOf(evictions)) != nil }) {
		r.Text("No run had requests for preemptible instances, so there are no evictions to draw.")
	} else {
		r.evictionFigures(c)
	}
	r.Heading(3, "All measures")
	r.allMeasures(c)
}

// evictionFigures adds figures of how often and when preemptible instances were evicted.
func (r report) evictionFigures(c compared) {
	r.Figure("evictions", "How often preemptible instances are evicted, and the losses, by the cost that chooses them, with 95 % intervals.", r.o.evictionBars(c))
	r.Figure("survival", "The share of preemptible instances that were not evicted, over the time that they have run (Kaplan and Meier), all runs together.", r.o.lifeLines(c))
	if len(c.shares) > 0 {
		r.Figure("shares", fmt.Sprintf("The same load of %g with a growing preemptible share, with 95 %% intervals. On the left the losses, on the "+
			"right the use by instances that were not evicted later.", r.o.Load), r.o.shareLines(c))
	}
}

func (r report) trace(from source) {
	switch s := from.(type) {
	case madeUp:
		m := s.model
		r.Text("**The machines are made up.** They come by a Poisson process with a daily cycle, %.0f a day in the mean, with the peak at %d:00 and "+
			"a swing of %g of the mean; are small, medium or large, as in Table 2 of the paper, in the ratio of 3 to 2 to 1; and live for a "+
			"log-normal time: half for at most %g hours, %.1f hours in the mean, none for more than %d days. A preemptible one lives as long as any other, if it "+
			"is not evicted. In the mean they ask for %.0f %% of the VCPUs; %.0f %% of the requests are preemptible.",
			m.PerDay, m.Peak/hour, m.Swing, m.Median/hour, m.MeanLifetime()/hour, m.Longest/day, 100*r.o.Load, 100*r.o.Share)
	case *file:
		r.Text("The machines are those of the file, as it is, and so are the preemptible ones: each run has the same, and only the draws among equal hosts, " +
			"ids and priorities differ. Intervals are over these draws alone, and say nothing of other machines.")
		r.account(s.account, s.larger)
		r.Text("Of the others %d come in the days that are measured; %d before, in the warm-up (days: %d), which are placed and not measured; and %d after all "+
			"that is simulated (days: %d), which are left out.", s.measured, s.early, r.o.WarmUp, s.late, r.o.Days)
		if s.days < int64(r.o.Days) {
			r.Text("**The file is shorter than the days that are simulated**: it has machines for %d of %d days, and after them nobody comes.", s.days, r.o.Days)
		}
	case *traces:
		r.Text("The machines are those of the Azure Public Dataset V1 (Cortez et al., \"Resource Central\", SOSP 2017), as huaweicloud/trace_generation_rnn has "+
			"them in bins, part dev and then part test. %.3g %% of the batches are kept, others in each run, so that they ask for %.0f %% of the VCPUs. "+
			"The traces are repeated every %d days until the days are over, with other batches each time. %.0f %% of the batches are preemptible. "+
			"Each machine of a batch is asked for by itself, one right after the other.",
			100*s.keep, 100*r.o.Load, s.pass/day, 100*r.o.Share)
		r.Text("%s", workload.AzureMadeUp)
		r.account(s.account, s.larger)
	}
}

// account reports which lines of a file were used.
func (r report) account(a workload.Account, larger int64) {
	r.Text("The trace has %d lines with %d machines. Machines left out since no host has room for them, however empty: %d.", a.Lines, a.Jobs, larger)
	items := leftOut(a)
	for i, item := range items {
		items[i] = strings.ToUpper(item[:1]) + item[1:] + "."
	}
	if items != nil {
		r.List(items...)
	}
}

func (r report) settingsText() {
	r.Text("The settings, by how the service is configured:")
	r.List(
		"`without`: preemptible instances are not offered, and there are no requests for them.",
		"`no`: `[preemptible] preempt_action = no`; they are offered, and stay.",
		"`equal`: `[preemptible] victim_cost = priority` where no flavor has a priority: all cost the same, so that the fewest leave, and of these those with the "+
			"smallest ids, which are random. The service has no choice that is nearer to a random one.",
		"the others: `[preemptible] victim_cost` by its name. The period is "+fmt.Sprintf("%g", float64(r.o.Period)/60)+" minutes.",
	)
	r.Text("Made up too: each preemptible instance has a flavor with a price of one unit for each VCPU, and one of three priorities, 1, 10 and 100, drawn " +
		"alike. An instance runs as soon as it is placed, a victim is gone as soon as it is chosen, and comes back no more; all that it had run " +
		"counts as lost. A refused request is not repeated. Instances here are never shelved, so that age and running_time are the same.")
}

// mainTable adds the table of the most important measures, one row for each setting.
func (r report) mainTable(c compared) {
	shown := []struct{ measure, title string }{
		{utilization, "VCPUs in use"}, {useful, "the same without what was lost"}, {"utilization_memory", "memory in use"},
		{refusedShare, "normal requests refused"}, {"refused_preemptible", "preemptible requests refused"}, {evictions, "evictions a day"},
		{lostWork, "VCPU-hours lost a day"}, {unpaidWork, "of these not paid for"}, {"evicted", "preemptible instances evicted"},
	}
	t := sim.Table{Columns: []string{"setting"}}
	for _, s := range shown {
		t.Columns = append(t.Columns, s.title)
	}
	t.Columns = append(t.Columns, "lost, times the least", "not paid for, times the least")
	lost, unpaid := r.o.timesLeast(c, measureOf(lostWork)), r.o.timesLeast(c, measureOf(unpaidWork))
	for _, one := range c.main {
		row := []any{one.name}
		for _, s := range shown {
			row = append(row, r.cell(one, measureOf(s.measure)))
		}
		for _, times := range []map[string]sim.Estimate{lost, unpaid} {
			cell := ""
			if e, has := times[one.name]; has {
				cell = e.Format(2)
			}
			row = append(row, cell)
		}
		t.Add(row...)
	}
	r.Table(t)
}

func (r report) cell(one outcome, m measure) string {
	values := one.values(r.o, m)
	if values == nil {
		return ""
	}
	return sim.Mean(values).Format(m.digits)
}

// summary names, for each measure, the costs with the best value.
func (r report) summary(c compared) {
	lost, unpaid := measureOf(lostWork), measureOf(unpaidWork)
	if names := r.least(c, unpaid); names != nil {
		r.Text("The unpaid VCPU-hours are least, in the mean over the runs, with %s; the hours that victims had run with %s.",
			strings.Join(names, " and "), strings.Join(r.least(c, lost), " and "))
	}
	if paper, ok := c.named("partial_hour"); ok {
		if e, has := r.o.timesLeast(c, lost)[paper.name]; has {
			r.Text("partial_hour, the paper's cost, chooses instances that have just begun another hour, be it the first or the hundredth: the time that they had run "+
				"is %s times the least of all costs. A tenant whose instances do not save what they have done loses all of it.", e.Format(2))
		}
		if paid := r.o.leastBy(nil, c, paper.name, unpaid, ""); paid != nil && paid[0].Verdict == sim.Held {
			r.Text("With it the provider loses least of what it could have charged for.")
		}
	}
}

// least returns the costs with the least mean of a measure; nil if the measure is undefined for all
// settings.
func (r report) least(c compared, m measure) (names []string) {
	best := math.Inf(1)
	for _, one := range c.main {
		values := one.values(r.o, m)
		if one.cost == "" || values == nil {
			continue
		}
		switch mean := sim.Mean(values).Mean; {
		case mean < best:
			best, names = mean, []string{one.name}
		case mean == best:
			names = append(names, one.name)
		}
	}
	return names
}

// wrong adds a sentence whether an instance that is not preemptible was evicted, which must not
// happen.
func (r report) wrong(c compared) {
	victims, wrong := int64(0), int64(0)
	for _, one := range slices.Concat(c.main, c.shares) {
		for _, t := range one.tallies {
			victims, wrong = victims+t.victims, wrong+t.wrong
		}
	}
	r.Text("Of %d instances that had to leave in all runs, %d were not preemptible.", victims, wrong)
}

// allMeasures shows every measure, and adds it to the results.
func (r report) allMeasures(c compared) {
	t := sim.Table{Columns: []string{"measure", "unit"}}
	for _, one := range c.main {
		t.Columns = append(t.Columns, one.name)
	}
	for _, m := range measures() {
		row := []any{m.name, m.unit}
		for _, one := range c.main {
			row = append(row, r.cell(one, m))
		}
		t.Add(row...)
	}
	r.Table(t)
	for _, one := range slices.Concat(c.main, c.shares) {
		for _, m := range measures() {
			if values := one.values(r.o, m); values != nil {
				e := sim.Mean(values)
				r.Results.Add("weeks", one.name, one.share, m.name, m.unit, e.Mean, e.Half, e.Runs)
			}
		}
	}
}

func (r report) deviations() {
	r.Heading(2, "Where this differs from the paper")
	r.List(
		"The paper's Algorithm 4 is read as the cost of the cheapest victims of a host (E001-1), since only so its tables come out.",
		"Free space of a host counts with what victims leave (E001-3): in T6 one small instance is enough for a medium one.",
		"Ties are broken by the fewest victims, then by their ids; the paper does not mention them.",
		"The disks of the paper's hosts, which would not hold what its tables show, are as large as is needed (E001-6).",
		"As in the service, but not in the paper, hosts without evictions come first whatever their weights; the snapshots use the weighers alone.",
		"The paper has no weeks: there is nothing in it to compare them with. Its own machines, of 10 to 300 minutes, were asked for until the first refusal.",
		"Times of Figure 2 are of the decision alone, in this service; the paper's are those of a process of Nova in Python, with other numbers.",
	)
}
