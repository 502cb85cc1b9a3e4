// SPDX-License-Identifier: Apache-2.0

package recurrence

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Occurrence is one time at which a reservation recurs.
type Occurrence struct {
	// Local is the local time by the rule, such as "2026-12-01T09:00:00", also if the clock skips it. It identifies the occurrence.
	Local string
	// Start is the instant of the local time.
	Start span.Instant
}

// Occurrences returns the first occurrences of the pattern, at most that many, that start before until, sorted by start. more
// is true if there are others before until. None is after the year 2200.
//
// Of two local times with the same instant, which can only be if the clock skips the earlier one, the earlier one is listed.
func (r Rule) Occurrences(until span.Instant, most int) (list []Occurrence, more bool) {
	if r.zone == nil {
		return nil, false
	}
	last := wall(min(until, span.Instant(latest))) + spread
	seen := map[span.Instant]bool{}
	for at := range r.locals(last) {
		if at > last {
			break
		}
		start := instantOf(at, r.zone)
		if start >= until || seen[start] {
			continue
		}
		seen[start] = true
		list = append(list, Occurrence{at.String(), start})
		if len(list)-1 == most {
			// A later local time can be an earlier instant only where the clock skips time, which is never more than a day.
			last = min(last, at+2*spread)
		}
	}
	slices.SortStableFunc(list, func(a, b Occurrence) int { return cmp.Compare(a.Start, b.Start) })
	if most = max(most, 0); len(list) > most {
		return list[:most:most], true
	}
	return list, false
}

// locals iterates over the local times of the pattern until last, sorted, each once.
func (r Rule) locals(last wall) iter.Seq[wall] {
	last = min(last, latest)
	return func(yield func(wall) bool) {
		also := r.also
		next := func(at wall) bool {
			return r.except[at] || r.exceptDays[at.midnight()] || yield(at)
		}
		// before visits the additional times before a local time, and omits the one that equals it.
		before := func(at wall) bool {
			for len(also) > 0 && also[0] < at {
				if !next(also[0]) {
					return false
				}
				also = also[1:]
			}
			if len(also) > 0 && also[0] == at {
				also = also[1:]
			}
			return true
		}
		for at := range r.ruled(last) {
			if !before(at) || !next(at) {
				return
			}
		}
		before(last + 1)
	}
}

// lifted is 7,600 years, after which the calendar repeats: the library expands the rule that many years later. It looks for a
// day of the rule until it finds one or the year 9999 ends, whatever the end that it knows, and so looks through a few
// centuries at most. See docs/adr/0046-recurrences.md.
const lifted = 19 * 146097 * int64(day)

// ruled iterates over the local times of the rule alone, from the start to last, sorted. COUNT and UNTIL hold.
func (r Rule) ruled(last wall) iter.Seq[wall] {
	last = min(last, latest, r.parts.until)
	return func(yield func(wall) bool) {
		if last < r.start {
			return
		}
		option := r.parts.option(r.start)
		option.Dtstart = time.Unix(int64(r.parts.period(r.start))+lifted, 0).UTC()
		option.Until = time.Unix(int64(last)+lifted, 0).UTC()
		series, err := rrule.NewRRule(option)
		if err != nil {
			return // parseParts has checked all that the library checks
		}
		next := series.Iterator()
		for n := 0; r.parts.count == 0 || n < r.parts.count; {
			t, ok := next()
			at := wall(t.Unix() - lifted)
			if !ok || at > last || r.parts.endedBefore(at, r.zone) {
				return
			}
			if at < r.start {
				continue // earlier in the period of the start
			}
			n++
			if !yield(at) {
				return
			}
		}
	}
}
