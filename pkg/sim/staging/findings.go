package staging

import (
	"fmt"
	"math"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// The verdicts.
const (
	didHold = "held"
	unclear = "within the noise"
	didNot  = "**not held**"
)

// finding is something that the thesis says, and whether it came out.
type finding struct {
	claim   string
	verdict string
	seen    string // what was seen, a sentence
	because string // why it may not have come out, a sentence; shown where it did not
}

// since gives the finding with a reason.
func (f finding) since(because string) finding {
	f.because = because
	return f
}

// yes is the verdict of what is so or not.
func yes(so bool) string {
	if so {
		return didHold
	}
	return didNot
}

// apart is the verdict of a difference that shall be positive, by run.
func apart(larger, smaller []float64) string {
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	switch e := sim.Mean(d); {
	case e.Mean > e.Half:
		return didHold
	case e.Mean >= -e.Half:
		return unclear
	}
	return didNot
}

// all is the verdict of several: the worst of them.
func all(verdicts ...string) string {
	worst := didHold
	for _, v := range verdicts {
		if v == didNot || v == unclear && worst == didHold {
			worst = v
		}
	}
	return worst
}

// counted is the verdict of what shall hold of all.
func counted(held, of int) string {
	switch held {
	case of:
		return fmt.Sprintf("held (%d of %d)", held, of)
	case 0:
		return fmt.Sprintf("**not held** (0 of %d)", of)
	}
	return fmt.Sprintf("**held in %d of %d**", held, of)
}

// near says that a value is within a share of what is printed.
func near(value, printed, share float64) bool { return math.Abs(value-printed) <= share*printed }

// What counts as near, as a share of the value that the thesis has.
const (
	nearTime  = 0.10
	nearDisk  = 0.50
	nearShare = 0.10 // of accuracy, in absolute terms
)

// findings hold the results against the thesis.
func (r *results) findings() (list []finding) {
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

// accuracyFindings are about figures 8.2 and 8.3. The thesis has no numbers beside what is
// quoted; the means are read off its figures.
func (r *results) accuracyFindings() []finding {
	one, two := accuracyTraces[0].name, accuracyTraces[1].name
	mean := func(trace string, p plan) sim.Estimate { return estimate(r.accuracy[accuracyKey{trace, p}], meanShare) }
	values := func(trace string, p plan) []float64 { return each(r.accuracy[accuracyKey{trace, p}], meanShare) }
	worst := estimate(r.accuracy[accuracyKey{two, planUnscheduled}], worstShare)
	return []finding{
		{claim: "Trace I: EDF and just in time give all of their time to most (figure 8.2)",
			verdict: yes(estimate(r.accuracy[accuracyKey{one, planEDF}], wholeShare).Mean > 0.5 && estimate(r.accuracy[accuracyKey{one, planJustInTime}], wholeShare).Mean > 0.5),
			seen: fmt.Sprintf("All of it to %s and %s of the virtual machines; in the mean %s and %s of the time.", percent(estimate(r.accuracy[accuracyKey{one, planEDF}], wholeShare).Mean),
				percent(estimate(r.accuracy[accuracyKey{one, planJustInTime}], wholeShare).Mean), percent(mean(one, planEDF).Mean), percent(mean(one, planJustInTime).Mean))},
		{claim: "Trace I: transfers from the start on are the worst, and aggressive ones come next (figure 8.2: about 89 and 99 %)",
			verdict: all(apart(values(one, planAggressive), values(one, planUnscheduled)), apart(values(one, planEDF), values(one, planAggressive)), apart(values(one, planJustInTime), values(one, planAggressive))),
			seen:    fmt.Sprintf("Unscheduled %s, aggressive %s.", percent(mean(one, planUnscheduled).Mean), percent(mean(one, planAggressive).Mean))},
		{claim: "Trace II: EDF is the best, aggressive comes next, then just in time, and unscheduled is the worst (figure 8.3: about 98, 94, 78 and 65 %)",
			verdict: all(apart(values(two, planEDF), values(two, planAggressive)), apart(values(two, planAggressive), values(two, planJustInTime)), apart(values(two, planJustInTime), values(two, planUnscheduled))),
			seen: fmt.Sprintf("%s, %s, %s and %s.", percent(mean(two, planEDF).Mean), percent(mean(two, planAggressive).Mean),
				percent(mean(two, planJustInTime).Mean), percent(mean(two, planUnscheduled).Mean))},
		{claim: "Just in time is good in Trace I only",
			verdict: apart(values(one, planJustInTime), values(two, planJustInTime)),
			seen:    fmt.Sprintf("%s in Trace I, %s in Trace II.", percent(mean(one, planJustInTime).Mean), percent(mean(two, planJustInTime).Mean))},
		finding{claim: "Unscheduled transfers leave 55 % of its time to the worst (figure 8.3)",
			verdict: yes(math.Abs(worst.Mean-0.55) <= nearShare),
			seen:    fmt.Sprintf("%s in the mean of the runs; within %d points is near.", percent(worst.Mean), int(100*nearShare))}.
			since("The worst depends on how many images one window has, which is drawn here, and on slow transfers, which the thesis may have had fewer of."),
	}
}

func (r *results) diskFindings() []finding {
	early, late := r.disk[staging.EDF], r.disk[staging.JIT]
	edf, jit := estimate(early, diskPeak), estimate(late, diskPeak)
	return []finding{
		{claim: "EDF/JIT takes much less disk than EDF (figure 8.4)", verdict: apart(each(early, func(k kept) float64 { return diskPeak(k) / 5 }), each(late, diskPeak)),
			seen: fmt.Sprintf("%.1f times less at the peak; 13 times in the thesis. A fifth would do here.", edf.Mean/jit.Mean)},
		finding{claim: fmt.Sprintf("EDF takes %v GB on a node at the peak, EDF/JIT %v GB (four images)", peakEDF, peakJIT),
			verdict: yes(near(edf.Mean, peakEDF, nearDisk) && near(jit.Mean, peakJIT, nearDisk)),
			seen:    fmt.Sprintf("%s and %s GB; within half is near.", edf.Format(1), jit.Format(1))}.
			since("How long these reservations take is not in the thesis, and with it how many of the 94 find a place."),
	}
}

func (r *results) reuseFindings() []finding {
	three, four := reuseTraces[0].name, reuseTraces[1].name
	at := func(trace string, planner, cached bool) []deployed { return r.reuse[reuseKey{trace, planner, cached}] }
	order := func(planner bool) string {
		return all(apart(each(at(three, planner, false), deployTime), each(at(three, planner, true), deployTime)), apart(each(at(three, planner, true), deployTime), each(at(four, planner, true), deployTime)))
	}
	mean := func(trace string, planner, cached bool) float64 {
		return estimate(at(trace, planner, cached), deployTime).Mean
	}
	times := func(planner bool) string {
		return fmt.Sprintf("%.0f, %.0f and %.0f s", mean(three, planner, false), mean(three, planner, true), mean(four, planner, true))
	}
	const nearDeploy = 0.3
	leads := []sim.Estimate{sim.Mean(r.lead(three, false)), sim.Mean(r.lead(four, false))}
	return []finding{
		{claim: "A cache shortens deployments, and more so where few images are used often (Traces III and IV)", verdict: order(false), seen: "On the testbed's way to choose nodes " + times(false) + "."},
		finding{claim: fmt.Sprintf("They take %v s without a cache, and %v and %v s with one", deployPlain, deployUniform, deploySkewed),
			verdict: yes(near(mean(three, false, false), deployPlain, nearDeploy) && near(mean(three, false, true), deployUniform, nearDeploy) && near(mean(four, false, true), deploySkewed, nearDeploy)),
			seen:    times(false) + "; within 30 % is near."}.
			since("What a copy from the cache takes on the testbed is not in the thesis; with " + fmt.Sprintf("%v MB/s it is made up here.", r.Measured.Copy)),
		{claim: fmt.Sprintf("At %d s %v and %v GB more are deployed with a cache", leadAt, leadUniform, leadSkewed),
			verdict: yes(near(leads[0].Mean, leadUniform, nearDeploy) && near(leads[1].Mean, leadSkewed, nearDeploy)),
			seen:    fmt.Sprintf("%s and %s GB; within 30 %% is near.", leads[0].Format(1), leads[1].Format(1))},
		{claim: "The same by the service's planner, which looks for nodes that have the image", verdict: order(true),
			seen: times(true) + fmt.Sprintf(", with %s, %s and %s transfers.", count(at(three, true, false), deploySent), count(at(three, true, true), deploySent), count(at(four, true, true), deploySent))},
	}
}

func count[T any](runs []T, of func(T) float64) string {
	return fmt.Sprintf("%.0f", estimate(runs, of).Mean)
}

func (r *results) imageFindings() []finding {
	few, many := estimate(r.of(fewLong, plainSetup), mixImages), estimate(r.of(manyShort, plainSetup), mixImages)
	f := finding{claim: "Few long jobs need 830 images in ten hours, 13.8 MB/s, and many short ones 1,876, 31.3 MB/s (section 4)",
		verdict: yes(near(few.Mean, float64(imagesInThesis[fewLong]), nearTime) && near(many.Mean, float64(imagesInThesis[manyShort]), nearTime)),
		seen:    fmt.Sprintf("%.0f images, %.1f MB/s, and %.0f, %.1f MB/s; the length of reservations was chosen so.", few.Mean, r.need(few.Mean), many.Mean, r.need(many.Mean))}
	held, of, furthest, where := 0, 0, 0.0, ""
	order := didHold
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
				order = all(order, apart(each(r.of(m, s), finish), each(r.of(m, setups[i-1]), finish)))
			}
		}
	}
	return []finding{f.since("The number follows from the length of reservations, which was given."),
		{claim: "Without suspension, virtual machines cost time, and images that are sent cost more (tables 4.1 and 4.2)", verdict: order,
			seen: fmt.Sprintf("With images sent it takes %s more for few long jobs and %s more for many short ones than without virtual machines; 14 and 112 %% in the thesis.", r.more(fewLong), r.more(manyShort))},
		{claim: "The six times of tables 4.1 and 4.2", verdict: counted(held, of) + fmt.Sprintf(" within %.0f %%", 100*nearTime), seen: fmt.Sprintf("Furthest: %s, by %+.1f %%.", where, 100*furthest)},
	}
}

// need is the bandwidth that so many images in ten hours take, in MB/s.
func (r *results) need(images float64) float64 {
	return images * float64(r.ImageSize) / float64(tenHours)
}

// more is how much longer a mix takes with images sent and without suspension.
func (r *results) more(m mix) string {
	return percent(r.finish(m, sentSetup).Mean/r.finish(m, plainSetup).Mean - 1)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// tally counts for which mixes something holds, and names where it does not.
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

// named names where it did not hold, as far as these are few.
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

// explodes is from which gap on the thesis marks a mix: prefetching without reuse takes so
// much longer than with images in place.
const explodes = 0.5

// mixFindings are the ordering that tables 8.3 to 8.7 show.
func (r *results) mixFindings() []finding {
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
	return []finding{
		finding{claim: "Without reuse work takes at least as long as with it (table 8.5)", verdict: counted(worse.held, worse.of), seen: "One percent is let pass." + worse.named()},
		finding{claim: "With reuse it takes about as long as with images in place, or longer", verdict: counted(costs.held, costs.of),
			seen: fmt.Sprintf("Three percent are let pass. At most it takes %s longer; 7 %% in the thesis.%s", percent(reusedMost), costs.named())},
		finding{claim: "Without reuse the gap explodes, to 97 % at most, and only where more bandwidth is needed than there is", verdict: counted(gap.held, gap.of),
			seen: fmt.Sprintf("At most it takes %s longer than with images in place. More than %s: %d mixes, all of them short; 7 in the thesis.%s", percent(most), percent(explodes), gap.of, gap.named())},
		finding{claim: "With long work and wide reservations suspension beats backfilling, in spite of the slowdown (table 8.3)", verdict: counted(wide.held, wide.of),
			seen: fmt.Sprintf("The best is %+.1f %%; −9.5 %% in the thesis.%s", 100*best, wide.named())}.
			since("With a quarter of the work best-effort, all of it ends with the request that comes last, whatever was done before."),
		finding{claim: "With short work it loses by no more than the slowdown", verdict: counted(brief.held, brief.of), seen: fmt.Sprintf("The worst of all is %+.1f %%; +8.2 %% in the thesis.%s", 100*worst, brief.named())},
		finding{claim: "The 144 times of tables 8.3 and 8.5", verdict: counted(sizes.held, sizes.of) + fmt.Sprintf(" within %.0f %%", 100*nearTime), seen: r.furthest()}.
			since("The thesis has one trace of each mix, and does not say how its reservations and its best-effort requests were drawn; a mix ends late or early by which of them come last."),
	}
}

// furthest names the largest deviation from the times of the thesis, and the mean of all.
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

// peakFindings are about the disk that the mixes take.
func (r *results) peakFindings() []finding {
	highest := func(s setup) (peak float64) {
		for _, m := range allMixes() {
			for _, w := range r.of(m, s) {
				peak = max(peak, mixPeak(w))
			}
		}
		return peak
	}
	early, late, reused := highest(earlySetup), highest(prefetchedSetup), highest(reusedSetup)
	return []finding{
		finding{claim: fmt.Sprintf("EDF/JIT takes no more than %v GB on a node in any mix, and EDF up to %v GB (section 8.3.2)", peakMixesJIT, peakMixesEDF),
			verdict: yes(near(late, peakMixesJIT, nearDisk) && near(early, peakMixesEDF, nearDisk)), seen: fmt.Sprintf("%.1f and %.1f GB; within half is near.", late, early)}.
			since("The highest of all mixes and runs is an extreme, and there are more runs here. EDF's follows from how many reservations a node has ahead of it, and its narrow ones go to the same few nodes."),
		finding{claim: fmt.Sprintf("With reuse it is slightly less, %v GB", peakMixesReuse), verdict: yes(reused <= late), seen: fmt.Sprintf("%.1f GB with reuse.", reused)}.
			since("By the rule of the paper an image that a later reservation uses again stays over the gap between the two (E000-6); all reservations are known at the beginning here, so that it may stay for hours. The thesis' program could limit how many images a node keeps; --pool-limit does."),
	}
}
