// SPDX-License-Identifier: Apache-2.0

package tariff

import (
	"iter"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Cheapest returns the start in runs, which are in order and do not overlap, from which so many seconds cost least; the
// earliest of several. It returns false if the runs have no start from which all prices are known.
func (c *Curve) Cheapest(runs iter.Seq[span.Span], seconds int64) (best span.Instant, found bool) {
	var least int64
	w := walk{curve: c, seconds: seconds}
	for run := range runs {
		for start := run.Start; start < run.End; start = min(w.turn(), run.End-1) {
			w.move(start)
			if cost, known := w.cost(); known && (!found || cost < least) {
				best, least, found = start, cost, true
			}
			if start == run.End-1 {
				break
			}
		}
	}
	return best, found
}

// Cost returns what a host costs throughout a span; false if not all prices are known.
func (c *Curve) Cost(s span.Span) (cost int64, known bool) {
	w := walk{curve: c, seconds: s.Seconds()}
	w.move(s.Start)
	return w.cost()
}

// walk is a reservation of so many seconds that moves along a curve, forward only.
type walk struct {
	curve       *Curve
	seconds     int64
	start, end  span.Instant
	first, last int // the first steps that end after start, and not before end
	gap         int // the first step from first on before which there is a gap
	placed      bool
}

// move moves the reservation to a later start.
func (w *walk) move(start span.Instant) {
	steps := w.curve.steps
	w.start, w.end = start, start.Add(w.seconds)
	if !w.placed {
		w.first, w.placed = w.curve.at(start), true
		w.last, w.gap = w.first, w.first
	}
	for w.first < len(steps) && steps[w.first].Span.End <= w.start {
		w.first++
	}
	for w.last < len(steps) && steps[w.last].Span.End < w.end {
		w.last++
	}
	for w.gap = max(w.gap, w.first+1); w.gap < len(steps) && steps[w.gap].Span.Start == steps[w.gap-1].Span.End; {
		w.gap++
	}
}

// cost returns the cost of the reservation, and false if not all prices are known.
func (w *walk) cost() (int64, bool) {
	steps := w.curve.steps
	if w.last >= min(w.gap, len(steps)) || steps[w.first].Span.Start > w.start {
		return 0, false
	}
	until := func(step int, t span.Instant) int64 {
		return w.curve.before[step] + steps[step].Price*int64(t-steps[step].Span.Start)
	}
	return until(w.last, w.end) - until(w.first, w.start), true
}

// turn returns the next start at which the beginning or the end of the reservation meets the edge of a step; Forever if
// there is none.
func (w *walk) turn() span.Instant {
	next := span.Forever
	note := func(step int, from, shift span.Instant) {
		for ; step < len(w.curve.steps); step++ {
			for _, edge := range []span.Instant{w.curve.steps[step].Span.Start, w.curve.steps[step].Span.End} {
				if edge > from {
					next = min(next, edge-shift)
					return
				}
			}
		}
	}
	note(w.first, w.start, 0)
	note(w.last, w.end, span.Instant(w.seconds))
	return next
}
