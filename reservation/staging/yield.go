// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// hopelessIn returns the first hopeless transfer of a change, with its end, as layOut would lay it
// out: it follows layOut and Site.yielding step by step, on one channel. No transfer may be late that
// is not hopeless. ok is false if the order of transfers with one deadline does not follow from the
// change.
func (l *line) hopelessIn(c change) (first *Transfer, ok bool) {
	all, ok := l.with(c)
	if !ok {
		return nil, false
	}
	if first, ok := l.run(all, c); ok {
		return first, true
	}
	var pending, others []job
	for i := range all {
		if all[i].hopeless() {
			others = append(others, all[i])
		} else {
			pending = append(pending, all[i])
		}
	}
	if first, ok := l.run(l.inGaps(pending, others), c); ok {
		return first, true
	}
	return l.run(append(pending, others...), c)
}

// with returns all transfers that wait, by deadline, after a change.
func (l *line) with(c change) (all []job, ok bool) {
	deadline := c.fresh[0].Deadline
	at := sort.Search(len(l.waiting), func(i int) bool { return l.waiting[i].deadline > deadline })
	if deadline <= l.now && at > 0 && l.waiting[at-1].deadline == deadline {
		return nil, false // it may belong to a demand that joins late, after the fresh ones
	}
	all = make([]job, 0, len(l.waiting)+len(c.fresh))
	gone := make(map[int]bool, len(c.gone))
	for _, i := range c.gone {
		gone[i] = true
	}
	add := func(jobs []job) {
		for i := range jobs {
			if !gone[int(jobs[i].transfer)] {
				all = append(all, jobs[i])
			}
		}
	}
	add(l.waiting[:at])
	for i := range c.fresh {
		j := l.job(&c.fresh[i])
		j.transfer = int32(^i)
		all = append(all, j)
	}
	add(l.waiting[at:])
	return all, true
}

// busy returns when transfers under way occupy the channel.
func (l *line) busy() timeline {
	return timeline{}.take(span.Span{Start: l.now, End: l.free})
}

// run returns the timeline with a job at its first possible time.
func (t timeline) run(j *job) (with timeline, start, end span.Instant) {
	if j.seconds == never {
		return t, span.Forever, span.Forever
	}
	start = t.free(j.release, j.seconds)
	end = start.Add(j.seconds)
	return t.take(span.Span{Start: start, End: end}), start, end
}

// run returns the first hopeless transfer of the change if the jobs run in this order, each as early
// as possible. ok is false if a job is late that is not hopeless.
func (l *line) run(order []job, c change) (first *Transfer, ok bool) {
	busy := l.busy()
	for i := range order {
		j := &order[i]
		var end span.Instant
		busy, _, end = busy.run(j)
		switch {
		case !j.hopeless() && end > j.due:
			return nil, false
		case j.hopeless() && j.transfer < 0 && first == nil:
			first = new(c.fresh[^j.transfer])
			first.End = end
		}
	}
	return first, true
}

// inGaps returns the jobs in the order of their starts if those pending, which can all be in time,
// run as late as possible, and the hopeless ones in the gaps that remain.
func (l *line) inGaps(pending, hopeless []job) []job {
	type laid struct {
		job
		start span.Instant
	}
	order := make([]laid, 0, len(pending)+len(hopeless))
	spans := make([]span.Span, 0, len(pending))
	before := span.Forever
	for i := range slices.Backward(pending) {
		j := &pending[i]
		start := j.due
		if j.seconds > 0 {
			end := min(j.due, before)
			start = end.Add(-j.seconds)
			before = start
			spans = append(spans, span.Span{Start: start, End: end})
		}
		order = append(order, laid{*j, start})
	}
	slices.Reverse(order)
	busy := l.busy()
	for i := range slices.Backward(spans) {
		busy = busy.take(spans[i])
	}
	for i := range hopeless {
		var start span.Instant
		busy, start, _ = busy.run(&hopeless[i])
		order = append(order, laid{hopeless[i], start})
	}
	slices.SortStableFunc(order, func(a, b laid) int { return cmp.Compare(a.start, b.start) })
	jobs := make([]job, len(order))
	for i := range order {
		jobs[i] = order[i].job
	}
	return jobs
}
