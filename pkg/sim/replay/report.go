// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// report writes the results of the trials.
func report(o *Options, in *survey, hosts []inventory.Host, results []result) *sim.Report {
	r := sim.NewReport("What if: " + strings.Join(baseNames(o.Traces), " and ") + " under " + fault.Counted(len(results), "setting"))
	writeSummary(r, results)
	writeMeasures(r, results)
	writeFigures(r, results)
	writeRun(r, o, in, hosts, results)
	writeAccount(r, o, in)
	writeRefusals(r, results)
	writeReading(r, o)
	writeResults(r, results)
	return r
}

func baseNames(paths []string) (names []string) {
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// writeSummary names the best setting by each measure.
func writeSummary(r *sim.Report, results []result) {
	r.Heading(2, "Which was best")
	if len(results) == 1 {
		r.Text("There was one setting only, so that there is nothing to compare it with.")
		return
	}
	var lines []string
	for i := range measures {
		m := &measures[i]
		v, ok := m.judge(results)
		if !ok {
			continue
		}
		lines = append(lines, v.sentence(m, results))
	}
	r.List(lines...)
	parts, _ := results[0].tally.parts.merged(verdictParts)
	r.Text("Take care where differences are small. A difference of acceptance, wait or slowdown is called clear where its mean over "+
		"%s of the time of the trace lies outside of its 95 %% interval (Student's t, the same jobs under both settings); "+
		"one of the other measures where it is above 1 %%. One trace is one history: what is best on it need not be best next year. "+
		"A setting that refuses more jobs often lets the others wait less: read waits beside acceptance. It also takes less energy and is done "+
		"sooner: makespan, energy and what comes of switching hosts are judged only among settings that accepted as many jobs as the one that "+
		"accepted the most, less one in a hundred of all.", fault.Counted(len(parts), "equal part"))
}

// sentence returns a sentence that names the setting that was best by a measure.
func (v *verdict) sentence(m *measure, results []result) string {
	names := func(settings []int) string {
		var all []string
		for _, i := range settings {
			all = append(all, results[i].setting.Name)
		}
		return strings.Join(all, "; ")
	}
	best, value := results[v.best].setting.Name, m.format(v.values[v.best])
	line := fmt.Sprintf("**%s**: %s, with %s", m.name, best, value)
	switch {
	case len(v.values) == 1:
		line = fmt.Sprintf("**%s**: nothing to compare with %s, which has %s", m.name, best, value)
	case v.allAlike() && v.short:
		line = fmt.Sprintf("**%s**: the trace is too short to tell; %s has %s", m.name, best, value)
	case v.allAlike():
		line = fmt.Sprintf("**%s**: no clear difference; %s has %s", m.name, best, value)
	case len(v.alike) > 0:
		line += "; not clearly different: " + names(v.alike)
	}
	if len(v.fewer) > 0 {
		line += "; not judged, with fewer jobs accepted: " + names(v.fewer)
	}
	return line
}

// writeMeasures writes the table of measures, one row for each setting.
func writeMeasures(r *sim.Report, results []result) {
	r.Heading(2, "All measures")
	t := sim.Table{Columns: []string{"measure"}}
	for i := range results {
		t.Columns = append(t.Columns, results[i].setting.Name)
	}
	for i := range measures {
		m := &measures[i]
		row := []any{m.name}
		if m.unit != "" && m.unit != "share" {
			row[0] = m.name + " (" + m.unit + ")"
		}
		v, judged := m.judge(results)
		known := false
		for k := range results {
			value, ok := m.of(&results[k])
			known = known || ok && m.means(results)
			cell := "–"
			if ok {
				cell = m.number(value)
			}
			if _, in := v.values[k]; judged && in && !v.allAlike() && cell == m.number(v.values[v.best]) {
				cell = "**" + cell + "**"
			}
			row = append(row, cell)
		}
		if known {
			t.Add(row...)
		}
	}
	r.Table(t)
	r.Text("The best of each row is bold, with all that are judged and have the same value, where it clearly differs from one of the others. Waits and slowdowns are those of jobs that were accepted and " +
		"not reserved for a start of their own. Slowdown is (wait + run time) / run time, and bounded slowdown the same with run times of 10 s at least. " +
		"Utilization is the share of all hosts that ran a job, from the first submission to the last end (the makespan). " +
		"A late start is one that was promised and missed because hosts still booted; delay_req is the sum of cores × seconds waited for boots / duration.")
}

// writeRun describes the workload and the settings.
func writeRun(r *sim.Report, o *Options, in *survey, hosts []inventory.Host, results []result) {
	r.Heading(2, "Setup")
	zero := in.zero()
	r.Text("%d jobs, submitted within %s (%v to %v on the clock of the replay); %d of them were reserved for a start of their own; "+
		"%d came with an estimate of their run time. The widest takes %d hosts. All together take %.0f host-hours, %.2f of what %s have in that time.",
		in.jobs, lasting(in.last-in.first), span.Instant(zero.Add(in.first)), span.Instant(zero.Add(in.last)), in.reserved, in.guessed, in.widest,
		in.demand/hour, in.demand/max(1, float64(in.last-in.first)*float64(len(hosts))), fault.Counted(len(hosts), "host"))
	if mean, ok := in.logged.mean(); ok {
		p95, _ := in.logged.at(0.95)
		r.Text("On the machine of the trace, jobs whose wait the trace contains waited for %.2f h in the mean, and 95 %% of them for at most %.2f h. "+
			"That machine had another scheduler, which may move jobs up; here a start stays once it is promised.", mean/hour, p95/hour)
	}
	var lines []string
	for i := range results {
		lines = append(lines, fmt.Sprintf("**%s**: %s.", results[i].setting.Name, results[i].setting.describe()))
	}
	r.List(lines...)
	if in.shaped > 0 && !o.Shapes {
		r.Text("%d jobs have the size of their virtual machines. Each virtual machine takes a whole host here; with a file of hosts they can share hosts.", in.shaped)
	}
	if in.yielding > 0 {
		r.Text("%d jobs are preemptible. Nothing makes them yield here: each keeps its hosts until it ends.", in.yielding)
	}
	for _, t := range in.traces {
		if t.header.MadeUp != "" {
			r.Text("**Not from the log.** %s", t.header.MadeUp)
		}
	}
	for i, t := range in.traces {
		if h := t.header; h.Installation != "" {
			r.Text("%s is of %s, %s. Acknowledged: %s.", filepath.Base(o.Traces[i]), h.Computer, h.Installation, h.Acknowledge)
		}
	}
}

// writeAccount writes which lines of each trace were skipped.
func writeAccount(r *sim.Report, o *Options, in *survey) {
	r.Heading(2, "Lines read and skipped")
	t := sim.Table{Columns: []string{"trace", "format", "lines", "jobs", "skipped", "each of these", "the first of them"}}
	for i, trace := range in.traces {
		name, a := filepath.Base(o.Traces[i]), trace.account
		if len(a.Skipped) == 0 {
			t.Add(name, trace.format, a.Lines, a.Jobs, 0, "", "")
		}
		for _, s := range a.Skipped {
			t.Add(name, trace.format, a.Lines, a.Jobs, s.Lines, s.Reason, "line "+numbers(s))
		}
	}
	r.Table(t)
	if o.MostJobs > 0 {
		r.Text("At most %d jobs are replayed. The table also counts jobs that were read ahead to sort them.", o.MostJobs)
	}
}

func numbers(s workload.Skipped) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.First), " ", ", "), "[]")
	if s.Lines > int64(len(s.First)) {
		text += ", …"
	}
	return text
}

// writeRefusals writes how many jobs each constraint has refused.
func writeRefusals(r *sim.Report, results []result) {
	all := map[string]bool{}
	for i := range results {
		for reason := range results[i].tally.refusals {
			all[reason] = true
		}
	}
	if len(all) == 0 {
		return
	}
	r.Heading(2, "Why jobs were refused")
	t := sim.Table{Columns: []string{"setting"}}
	reasons := slices.Sorted(maps.Keys(all))
	t.Columns = append(t.Columns, reasons...)
	for i := range results {
		row := []any{results[i].setting.Name}
		for _, reason := range reasons {
			row = append(row, results[i].tally.refusals[reason])
		}
		t.Add(row...)
	}
	r.Table(t)
	r.Text("The columns are the constraints that the service names in a refusal; free_hosts means that enough hosts were there, and too few free together in time.")
}

// writeReading writes the section on how the replay was done.
func writeReading(r *sim.Report, o *Options) {
	r.Heading(2, "How it was done")
	r.List(
		"Every job is a reservation request to the booking code of the service, at the time of its submission. A job with a reserved start in the trace requests that start; "+
			"any other may begin at once or later, until its deadline or the end of its patience.",
		"A job is booked for the estimate of its user, or for its run time if that is longer or no estimate is known. It ends when it is done, and the rest of its time is free for later requests.",
		"A start that was promised stays: a job that could begin earlier because another ended early is not moved up, as a batch scheduler that backfills would. "+
			"So an early request for hosts far ahead competes with jobs that have been promised these already.",
		"Hosts are switched by the service's own energy controller, in simulated time. They are all on and empty at first.",
		fmt.Sprintf("A host takes %g W idle, %g W in use, %g W off, and %g J for a shutdown with the boot after it.", o.Draw.Idle, o.Draw.Full, o.Draw.Off, o.Draw.BootJoules),
		fmt.Sprintf("Boot times follow from seed %d. The same traces, settings and seed produce the same report.", o.Seed),
	)
}

// writeResults fills results.csv.
func writeResults(r *sim.Report, results []result) {
	r.Results.Columns = []string{"setting", "measure", "unit", "value"}
	for i := range results {
		one := &results[i]
		add := func(key, unit string, value any) { r.Results.Add(one.setting.Name, key, unit, value) }
		for k := range measures {
			m := &measures[k]
			if value, ok := m.of(one); ok {
				add(m.key, m.unit, value)
			}
		}
		t := one.tally
		add("reserved_jobs", "", t.reserved.jobs)
		add("reserved_accepted", "", t.reserved.accepted)
		add("other_jobs", "", t.others.jobs)
		add("other_accepted", "", t.others.accepted)
		add("most_wait", "h", float64(t.waits.most)/hour)
		add("cut_short", "", t.cut)
		for _, reason := range slices.Sorted(maps.Keys(t.refusals)) {
			add("refused_"+strings.ReplaceAll(reason, " ", "_"), "", t.refusals[reason])
		}
		if p := one.power; p != nil {
			add("boots", "", p.Boots)
			add("late_seconds", "s", p.LateSeconds)
			add("delayed_by_boot", "", p.Delayed)
		}
	}
}
