// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"fmt"
	"math"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// apart returns the verdict on the claim that the first series is larger than the second, from the
// differences of each run.
func apart(larger, smaller []float64) sim.Verdict {
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	return sim.Positive(sim.Mean(d))
}

// near reports whether a value differs from the printed one by at most that share of the printed
// one.
func near(value, printed, share float64) bool { return math.Abs(value-printed) <= share*printed }

// The largest deviations that count as near, as shares of the thesis' value.
const (
	nearTime  = 0.10
	nearDisk  = 0.50
	nearShare = 0.10 // of accuracy, in absolute terms
)

// findings compares the results with the thesis.
func (r *results) findings() (list []sim.Finding) {
	if r.has(Accuracy) {
		list = append(list, r.accuracyFindings()...)
	}
	if r.has(Disk) {
		list = append(list, r.diskFindings()...)
	}
	if r.has(Reuse) {
		list = append(list, r.reuseFindings()...)
	}
	if r.has(Mixes) {
		list = append(list, r.imageFindings()...)
		list = append(list, r.mixFindings()...)
		list = append(list, r.peakFindings()...)
	}
	return list
}

// accuracyFindings returns the findings on figures 8.2 and 8.3. The thesis states no other numbers
// than those quoted; the means are read off its figures.
func (r *results) accuracyFindings() []sim.Finding {
	one, two := accuracyTraces[0].name, accuracyTraces[1].name
	mean := func(trace string, p plan) sim.Estimate { return estimate(r.accuracy[accuracyKey{trace, p}], meanShare) }
	values := func(trace string, p plan) []float64 { return sim.Each(r.accuracy[accuracyKey{trace, p}], meanShare) }
	worst := estimate(r.accuracy[accuracyKey{two, planUnscheduled}], worstShare)
	return []sim.Finding{
		{Claim: "Trace I: with EDF and just in time most get all of their time (figure 8.2)",
			Verdict: sim.HeldIf(estimate(r.accuracy[accuracyKey{one, planEDF}], wholeShare).Mean > 0.5 && estimate(r.accuracy[accuracyKey{one, planJustInTime}], wholeShare).Mean > 0.5),
			Seen: fmt.Sprintf("All of it to %s and %s of the virtual machines; in the mean %s and %s of the time.", percent(estimate(r.accuracy[accuracyKey{one, planEDF}], wholeShare).Mean),
				percent(estimate(r.accuracy[accuracyKey{one, planJustInTime}], wholeShare).Mean), percent(mean(one, planEDF).Mean), percent(mean(one, planJustInTime).Mean))},
		{Claim: "Trace I: transfers from the start on are the worst, and aggressive ones come next (figure 8.2: about 89 and 99 %)",
			Verdict: sim.Worst(apart(values(one, planAggressive), values(one, planUnscheduled)), apart(values(one, planEDF), values(one, planAggressive)), apart(values(one, planJustInTime), values(one, planAggressive))),
			Seen:    fmt.Sprintf("Unscheduled %s, aggressive %s.", percent(mean(one, planUnscheduled).Mean), percent(mean(one, planAggressive).Mean))},
		{Claim: "Trace II: EDF is the best, aggressive comes next, then just in time, and unscheduled is the worst (figure 8.3: about 98, 94, 78 and 65 %)",
			Verdict: sim.Worst(apart(values(two, planEDF), values(two, planAggressive)), apart(values(two, planAggressive), values(two, planJustInTime)), apart(values(two, planJustInTime), values(two, planUnscheduled))),
			Seen: fmt.Sprintf("%s, %s, %s and %s.", percent(mean(two, planEDF).Mean), percent(mean(two, planAggressive).Mean),
				percent(mean(two, planJustInTime).Mean), percent(mean(two, planUnscheduled).Mean))},
		{Claim: "Just in time is good in Trace I only",
			Verdict: apart(values(one, planJustInTime), values(two, planJustInTime)),
			Seen:    fmt.Sprintf("%s in Trace I, %s in Trace II.", percent(mean(one, planJustInTime).Mean), percent(mean(two, planJustInTime).Mean))},
		sim.Finding{Claim: "Unscheduled transfers leave 55 % of its time to the worst (figure 8.3)",
			Verdict: sim.HeldIf(math.Abs(worst.Mean-0.55) <= nearShare),
			Seen:    fmt.Sprintf("%s in the mean of the runs; within %d points is near.", percent(worst.Mean), int(100*nearShare))}.
			Since("The worst depends on how many images one window has, which is drawn here, and on slow transfers, which the thesis may have had fewer of."),
	}
}

func (r *results) diskFindings() []sim.Finding {
	early, late := r.disk[staging.EDF], r.disk[staging.JIT]
	edf, jit := estimate(early, diskPeak), estimate(late, diskPeak)
	return []sim.Finding{
		{Claim: "EDF/JIT takes much less disk than EDF (figure 8.4)", Verdict: apart(sim.Each(early, func(k kept) float64 { return diskPeak(k) / 5 }), sim.Each(late, diskPeak)),
			Seen: fmt.Sprintf("%.1f times less at the peak; 13 times in the thesis. A fifth would do here.", edf.Mean/jit.Mean)},
		sim.Finding{Claim: fmt.Sprintf("EDF takes %v GB on a node at the peak, EDF/JIT %v GB (four images)", peakEDF, peakJIT),
			Verdict: sim.HeldIf(near(edf.Mean, peakEDF, nearDisk) && near(jit.Mean, peakJIT, nearDisk)),
			Seen:    fmt.Sprintf("%s and %s GB; within half is near.", edf.Format(1), jit.Format(1))}.
			Since("How long these reservations take is not in the thesis, and with it how many of the 94 find a place."),
	}
}

func (r *results) reuseFindings() []sim.Finding {
	three, four := reuseTraces[0].name, reuseTraces[1].name
	at := func(trace string, planner, cached bool) []deployed { return r.reuse[reuseKey{trace, planner, cached}] }
	order := func(planner bool) sim.Verdict {
		return sim.Worst(apart(sim.Each(at(three, planner, false), deployTime), sim.Each(at(three, planner, true), deployTime)), apart(sim.Each(at(three, planner, true), deployTime), sim.Each(at(four, planner, true), deployTime)))
	}
	mean := func(trace string, planner, cached bool) float64 {
		return estimate(at(trace, planner, cached), deployTime).Mean
	}
	times := func(planner bool) string {
		return fmt.Sprintf("%.0f, %.0f and %.0f s", mean(three, planner, false), mean(three, planner, true), mean(four, planner, true))
	}
	const nearDeploy = 0.3
	leads := []sim.Estimate{sim.Mean(r.lead(three, false)), sim.Mean(r.lead(four, false))}
	return []sim.Finding{
		{Claim: "A cache shortens deployments, and more so where few images are used often (Traces III and IV)", Verdict: order(false), Seen: "On the testbed's way to choose nodes " + times(false) + "."},
		sim.Finding{Claim: fmt.Sprintf("They take %v s without a cache, and %v and %v s with one", deployPlain, deployUniform, deploySkewed),
			Verdict: sim.HeldIf(near(mean(three, false, false), deployPlain, nearDeploy) && near(mean(three, false, true), deployUniform, nearDeploy) && near(mean(four, false, true), deploySkewed, nearDeploy)),
			Seen:    times(false) + "; within 30 % is near."}.
			Since("The thesis has no time for a copy from the cache on the testbed; " + fmt.Sprintf("%v MB/s is made up.", r.Measured.Copy)),
		{Claim: fmt.Sprintf("At %d s %v and %v GB more are deployed with a cache", leadAt, leadUniform, leadSkewed),
			Verdict: sim.HeldIf(near(leads[0].Mean, leadUniform, nearDeploy) && near(leads[1].Mean, leadSkewed, nearDeploy)),
			Seen:    fmt.Sprintf("%s and %s GB; within 30 %% is near.", leads[0].Format(1), leads[1].Format(1))},
		{Claim: "The same by the service's planner, which looks for nodes that have the image", Verdict: order(true),
			Seen: times(true) + fmt.Sprintf(", with %s, %s and %s transfers.", count(at(three, true, false), deploySent), count(at(three, true, true), deploySent), count(at(four, true, true), deploySent))},
	}
}

func count[T any](runs []T, of func(T) float64) string {
	return fmt.Sprintf("%.0f", estimate(runs, of).Mean)
}

func (r *results) imageFindings() []sim.Finding {
	few, many := estimate(r.of(fewLong, plainSetup), mixImages), estimate(r.of(manyShort, plainSetup), mixImages)
	f := sim.Finding{Claim: "Few long jobs need 830 images in ten hours, 13.8 MB/s, and many short ones 1,876, 31.3 MB/s (section 4)",
		Verdict: sim.HeldIf(near(few.Mean, float64(imagesInThesis[fewLong]), nearTime) && near(many.Mean, float64(imagesInThesis[manyShort]), nearTime)),
		Seen:    fmt.Sprintf("%.0f images, %.1f MB/s, and %.0f, %.1f MB/s; the length of reservations was chosen so.", few.Mean, r.need(few.Mean), many.Mean, r.need(many.Mean))}
	held, of, furthest, where := 0, 0, 0.0, ""
	order := sim.Held
	for _, m := range []mix{fewLong, manyShort} {
		printed := backfilledInThesis[m]
		setups := []setup{plainSetup, backfilledSetup, sentSetup}
		for i, s := range setups {
			of++
			ratio := r.finish(m, s).Mean/float64(printed[i]) - 1
			if math.Abs(ratio) <= nearTime {
				held++
			}
			if math.Abs(ratio) > math.Abs(furthest) {
				furthest, where = ratio, fmt.Sprintf("%v, %s", m, s.name)
			}
			if i > 0 {
				order = sim.Worst(order, apart(sim.Each(r.of(m, s), finish), sim.Each(r.of(m, setups[i-1]), finish)))
			}
		}
	}
	return []sim.Finding{f.Since("The number follows from the length of reservations, which was given."),
		{Claim: "Without suspension, virtual machines cost time, and images that are sent cost more (tables 4.1 and 4.2)", Verdict: order,
			Seen: fmt.Sprintf("With images sent it takes %s more for few long jobs and %s more for many short ones than without virtual machines; 14 and 112 %% in the thesis.", r.more(fewLong), r.more(manyShort))},
		{Claim: fmt.Sprintf("The six times of tables 4.1 and 4.2, within %.0f %%", 100*nearTime), Verdict: sim.Counted(held, of), Seen: fmt.Sprintf("Furthest: %s, by %+.1f %%.", where, 100*furthest)},
	}
}

// need returns the bandwidth, in MB/s, for sending that many images in ten hours.
func (r *results) need(images float64) float64 {
	return images * float64(r.ImageSize) / float64(tenHours)
}

// more describes how much longer a mix takes when images are sent and work is not suspended.
func (r *results) more(m mix) string {
	return percent(r.finish(m, sentSetup).Mean/r.finish(m, plainSetup).Mean - 1)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// tally counts the mixes for which a statement holds, and lists the others.
type tally struct {
	held, of int
	not      []string
}

func (t *tally) note(m mix, holds bool) {
	t.of++
	if holds {
		t.held++
	} else {
		t.not = append(t.not, m.String())
	}
}

// named returns a sentence for the report with the mixes for which the statement does not hold: at
// most the first six, and how many more there are. It is "" if the statement holds for all.
func (t *tally) named() string {
	const few = 6
	switch n := len(t.not); {
	case n == 0:
		return ""
	case n > few:
		return fmt.Sprintf(" Not: %s and %d more.", strings.Join(t.not[:few], ", "), n-few)
	default:
		return " Not: " + strings.Join(t.not, ", ") + "."
	}
}

// explodes is the least difference that the thesis highlights: prefetching without reuse takes
// longer than images in place by this share.
const explodes = 0.5

// mixFindings returns the findings on the order of the setups in tables 8.3 to 8.7.
func (r *results) mixFindings() []sim.Finding {
	var worse, costs, gap, wide, brief, sizes tally
	most, reusedMost, best, worst := 0.0, 0.0, 1.0, -1.0
	for _, m := range allMixes() {
		plain, ready := r.finish(m, plainSetup).Mean, r.finish(m, predeployedSetup).Mean
		sent, reused := r.finish(m, prefetchedSetup).Mean, r.finish(m, reusedSetup).Mean
		worse.note(m, sent >= 0.99*reused)
		costs.note(m, reused >= 0.97*ready)
		if sent > (1+explodes)*ready {
			gap.note(m, r.need(estimate(r.of(m, prefetchedSetup), mixSent).Mean) > r.Rate)
		}
		if m.Length == long && (m.Width == widths[2] || m.Width == widths[3]) {
			wide.note(m, ready < plain)
		}
		if m.Length == short {
			brief.note(m, ready <= (1+r.Slowdown)*plain)
		}
		printed := inThesis[m]
		for i, value := range []float64{plain, ready, sent, reused} {
			sizes.note(m, near(value, []float64{float64(printed.plain), float64(printed.predeployed), float64(printed.prefetched), float64(printed.reused)}[i], nearTime))
		}
		most, reusedMost = max(most, sent/ready-1), max(reusedMost, reused/ready-1)
		best, worst = min(best, ready/plain-1), max(worst, ready/plain-1)
	}
	return []sim.Finding{
		sim.Finding{Claim: "Without reuse work takes at least as long as with it (table 8.5)", Verdict: sim.Counted(worse.held, worse.of), Seen: "One percent is let pass." + worse.named()},
		sim.Finding{Claim: "With reuse it takes about as long as with images in place, or longer", Verdict: sim.Counted(costs.held, costs.of),
			Seen: fmt.Sprintf("Three percent are let pass. At most it takes %s longer; 7 %% in the thesis.%s", percent(reusedMost), costs.named())},
		sim.Finding{Claim: "Without reuse the gap explodes, to 97 % at most, and only where more bandwidth is needed than there is", Verdict: sim.Counted(gap.held, gap.of),
			Seen: fmt.Sprintf("At most it takes %s longer than with images in place. More than %s: %d mixes, all of them short; 7 in the thesis.%s", percent(most), percent(explodes), gap.of, gap.named())},
		sim.Finding{Claim: "With long work and wide reservations suspension beats backfilling, in spite of the slowdown (table 8.3)", Verdict: sim.Counted(wide.held, wide.of),
			Seen: fmt.Sprintf("The best is %+.1f %%; −9.5 %% in the thesis.%s", 100*best, wide.named())}.
			Since("With a quarter of the work best-effort, all of it ends with the request that comes last, whatever was done before."),
		sim.Finding{Claim: "With short work it loses by no more than the slowdown", Verdict: sim.Counted(brief.held, brief.of), Seen: fmt.Sprintf("The worst of all is %+.1f %%; +8.2 %% in the thesis.%s", 100*worst, brief.named())},
		sim.Finding{Claim: fmt.Sprintf("The 144 times of tables 8.3 and 8.5, within %.0f %%", 100*nearTime), Verdict: sim.Counted(sizes.held, sizes.of), Seen: r.furthest()}.
			Since("The thesis has one trace of each mix, and does not state how its reservations and its best-effort requests were drawn; whether a mix ends late or early depends on which of them come last."),
	}
}

// furthest describes the largest deviation from the times of the thesis, and the mean of all
// deviations.
func (r *results) furthest() string {
	largest, where, sum, n := 0.0, "", 0.0, 0
	for _, m := range allMixes() {
		printed := inThesis[m]
		for _, c := range []struct {
			s setup
			p int64
		}{{plainSetup, printed.plain}, {predeployedSetup, printed.predeployed}, {prefetchedSetup, printed.prefetched}, {reusedSetup, printed.reused}} {
			d := r.finish(m, c.s).Mean/float64(c.p) - 1
			sum, n = sum+math.Abs(d), n+1
			if math.Abs(d) > math.Abs(largest) {
				largest, where = d, fmt.Sprintf("%v, %s", m, c.s.name)
			}
		}
	}
	return fmt.Sprintf("In the mean they are %.1f %% off. Furthest: %s, by %+.0f %%.", 100*sum/float64(n), where, 100*largest)
}

// peakFindings returns the findings on the disk space that the mixes need.
func (r *results) peakFindings() []sim.Finding {
	highest := func(s setup) (peak float64) {
		for _, m := range allMixes() {
			for _, w := range r.of(m, s) {
				peak = max(peak, mixPeak(w))
			}
		}
		return peak
	}
	early, late, reused := highest(earlySetup), highest(prefetchedSetup), highest(reusedSetup)
	return []sim.Finding{
		sim.Finding{Claim: fmt.Sprintf("EDF/JIT takes no more than %v GB on a node in any mix, and EDF up to %v GB (section 8.3.2)", peakMixesJIT, peakMixesEDF),
			Verdict: sim.HeldIf(near(late, peakMixesJIT, nearDisk) && near(early, peakMixesEDF, nearDisk)), Seen: fmt.Sprintf("%.1f and %.1f GB; within half is near.", late, early)}.
			Since("The highest of all mixes and runs is an extreme, and there are more runs here. EDF's follows from how many reservations a node has ahead of it, and its narrow ones go to the same few nodes."),
		sim.Finding{Claim: fmt.Sprintf("With reuse it is slightly less, %v GB", peakMixesReuse), Verdict: sim.HeldIf(reused <= late), Seen: fmt.Sprintf("%.1f GB with reuse.", reused)}.
			Since("By the rule of the paper an image that a later reservation uses again stays over the gap between the two (E000-6); all reservations are known at the beginning here, so that it may stay for hours. The thesis' program could limit how many images a node keeps; --pool-limit does."),
	}
}
