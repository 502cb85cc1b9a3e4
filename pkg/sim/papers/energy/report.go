// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// report writes what was run and the results.
func (r *results) report() *sim.Report {
	report := sim.NewReport("Switching idle hosts off, with reservations and without")
	report.Text("This repeats the evaluation of Rossigneux, Lefèvre and Assunção, \"A Resource Reservation System to Improve the Support for HPC " +
		"Applications in OpenStack\" (paper 004), on a virtual clock, with the booking code and the energy controller of the service. " +
		"Res_idle is the capacity not in use, e_savings the capacity switched off, both in core-hours; delay_req is the sum of cores × " +
		"seconds waited for boots / duration over the requests that waited.")
	r.workload(report)
	r.setup(report)
	report.Heading(2, "Against the paper")
	report.Text("The draft of the paper has no numbers: its section of results is empty. Its results can be compared only with the abstract of the " +
		"published paper (CNSM 2016): reservations reduce the time to deliver a cluster, at savings like those of switching idle hosts off.")
	report.Findings("expected", r.findings())
	report.Heading(2, "The strategies")
	report.Table(r.base())
	r.figures(report)
	for _, factor := range r.options.Sweeps {
		report.Heading(2, "By "+factor)
		report.Table(r.by(factor))
	}
	report.Heading(2, "Where it differs from the paper")
	report.List(r.deviations()...)
	report.Results = r.csv()
	return report
}

func (r *results) workload(report *sim.Report) {
	report.Heading(2, "The requests")
	d, o := r.demands[0], &r.options
	days := float64(d.seconds) / float64(day)
	if o.Trace == "" {
		report.Text("**The workload is made up**: jobs of the Lublin-Feitelson model (2003) for a machine of %d processors, %v a day in the mean, with its "+
			"daily cycle; other jobs in each run. In the first run there are %d requests in %.0f days, and %d hosts of one core: the most that are "+
			"ever in use at once, and %.0f %% more.", o.Processors, o.PerDay, len(d.requests), days, d.hosts, 100*o.Safety)
	} else {
		report.Text("The jobs are those of %s, from day %d on: %d requests in %.0f days, on %d hosts of one core: the most that are ever in use at "+
			"once, and %.0f %% more. %s", filepath.Base(o.Trace), o.From, len(d.requests), days, d.hosts, 100*o.Safety, account(&d.account))
		if d.header.Acknowledge != "" {
			report.Text("The log is acknowledged to %s (%s).", d.header.Acknowledge,
				strings.Join([]string{d.header.Computer, d.header.Installation}, ", "))
		}
	}
	if d.header.MadeUp != "" {
		report.Text("**%s**", d.header.MadeUp)
	}
	report.Text("They were adapted as in the paper, so that with all requests on demand each arrives at its start: a reservation that was requested in working hours "+
		"(%d to %d o'clock) for a start outside of them starts when it was requested (%d requests), other reservations start when they did, and jobs without a "+
		"reservation are unchanged. A request lasts as long as its job ran.", o.Hours.From, o.Hours.To, d.moved)
	report.Text("With reservations, a share of the requests is known ahead, the same ones in all settings of a run. Those that are reservations in the "+
		"workload are asked for when they were there. **For all others the lead is made up**: uniformly from %s to %s.",
		seconds(o.Ahead.Least), seconds(o.Ahead.Most))
}

// account describes in a sentence how many lines of a file could be read.
func account(a *workload.Account) string {
	skipped := int64(0)
	for _, s := range a.Skipped {
		skipped += s.Lines
	}
	text := fmt.Sprintf("Of %d lines that were read %d were left out", a.Lines, skipped)
	var reasons []string
	for _, s := range a.Skipped {
		reasons = append(reasons, fmt.Sprintf("%d: %s", s.Lines, s.Reason))
	}
	if len(reasons) > 0 {
		text += " (" + strings.Join(reasons, "; ") + ")"
	}
	return text + "."
}

// setup writes the section on the set-up: what was measured, planned and drawn, and what is made up.
func (r *results) setup(report *sim.Report) {
	report.Heading(2, "The set-up")
	o, b, m := &r.options, &r.options.Base, &r.options.Machines
	report.List(
		fmt.Sprintf("Measured each minute, planned every five, looked after hosts on their way every five seconds. The base: idle for %d measurements, "+
			"a horizon of %s, forecast by %s, %.0f %% known ahead. One factor varies at a time.", b.Idle, seconds(b.Horizon), b.Forecaster, 100*b.Share),
		fmt.Sprintf("A boot takes %s in the median, log-normal with a deviation of %v of its logarithm, and %.1f %% longer for each other that is under way "+
			"as it begins; a shutdown takes %s. That boots are log-normal and take longer in company is known; how much is made up.",
			seconds(b.Boot), m.Spread, 100*m.Crowding, seconds(m.Shutdown)),
		fmt.Sprintf("A host takes %v W off, %v W idle, %v W in use and %v W while it stops or boots; these are the numbers of the example of Batsim "+
			"(platforms/cluster_energy_128.xml) unless others were given.", m.Draw.Off, m.Draw.Idle, m.Draw.Full, o.BootWatts),
		fmt.Sprintf("%d runs of each setting with other random numbers (seed %d), the same requests for all settings of a run; ± is the 95 %% interval of the "+
			"mean (Student's t). Of a trace, the runs differ in which requests are known ahead, how long, and in boot times.", o.Runs, o.Seed),
	)
}

// base returns the table of the strategies with the base setting.
func (r *results) base() sim.Table {
	t := sim.Table{Columns: []string{"", "unit"}}
	for _, s := range Strategies {
		t.Columns = append(t.Columns, string(s))
	}
	for _, m := range measures {
		row := []any{m.name, m.unit}
		for _, s := range Strategies {
			row = append(row, m.estimate(r.of(s, r.options.Base)).Format(m.digits))
		}
		t.Add(row...)
	}
	return t
}

// by returns the table of measures over the values of a factor. Share and horizon do not
// affect SwitchOff, which then has one row.
func (r *results) by(factor string) sim.Table {
	t := sim.Table{Columns: []string{factor, "strategy"}}
	shown := []measure{saved, delay, delayed, kWh, switches, late}
	for _, m := range shown {
		t.Columns = append(t.Columns, m.label())
	}
	add := func(value string, s Strategy, setting Setting) {
		row := []any{value, string(s)}
		for _, m := range shown {
			row = append(row, m.estimate(r.of(s, setting)).Format(m.digits))
		}
		t.Add(row...)
	}
	all := factor == Share || factor == Horizon
	if all {
		add("any", SwitchOff, r.options.Base)
	}
	for _, v := range r.variantsOf(factor) {
		if !all {
			add(v.value, SwitchOff, v.Setting)
		}
		add(v.value, Reservations, v.Setting)
	}
	return t
}

func (r *results) csv() sim.Table {
	t := sim.Table{Columns: []string{"factor", "value", "strategy", "measure", "unit", "mean", "half_interval_95", "runs"}}
	for _, v := range r.variants {
		for _, s := range Strategies {
			for _, m := range measures {
				e := m.estimate(r.of(s, v.Setting))
				t.Add(cmp.Or(v.factor, "base"), v.value, string(s), m.name, m.unit, e.Mean, e.Half, e.Runs)
			}
		}
	}
	return t
}

func (r *results) deviations() []string {
	return []string{
		"The paper counts cores; here each host has one, and a request for n processors or nodes gets n hosts.",
		"A reserved host is woken at the horizon, or a boot time before if that is longer, and not with the next plan: check A004-6 saves 187 core-minutes " +
			"instead of 190.",
		"Before a host is switched off, it is closed to new instances and watched for a minute, as in the service, so it is off a little later.",
		"The service switches nothing off for ten minutes after all instances, or more than half of them and at least twenty, have disappeared, since the inventory may be wrong: " +
			"\"halted\". With requests of many hosts this happens now and again when one ends.",
		"A request that must wait for boots starts at the promised time, which follows from the longest of the last boots of these hosts, and so may wait longer " +
			"than its last host needs to boot. That wait counts in delay_req.",
		"Delay_req weighs a wait by the duration: short jobs on many hosts make most of it.",
		"The forecasters time_of_week and holt_winters return the same as last_value until they have seen a week and two days.",
		"The paper's rules have no margin beside the boot time. The service sees that a request waits for a boot, and that a host is up, only at its next " +
			"step, so that such a request begins up to some seconds after its promised start.",
		"The paper does not describe its handling of best-effort requests. Here they arrive at their start in the log, so that no more is requested at once than the machine had; without a start in the log they arrive at their submission.",
	}
}
