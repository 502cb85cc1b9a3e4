// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// timeline is the spans in which a channel is busy, sorted; adjacent spans are merged.
type timeline []span.Span

// free returns the first start, at or after at, from which the channel is free for that many
// seconds. A transfer that takes no time never waits.
func (t timeline) free(at span.Instant, seconds int64) span.Instant {
	if seconds == 0 {
		return at
	}
	i, _ := slices.BinarySearchFunc(t, at, func(s span.Span, at span.Instant) int {
		if s.End <= at {
			return -1
		}
		return 1
	})
	for ; i < len(t) && t[i].Start < at.Add(seconds); i++ {
		at = max(at, t[i].End)
	}
	return at
}

// freeBefore returns the last start from which the channel is free for that many seconds, which
// must end at or before by.
func (t timeline) freeBefore(by span.Instant, seconds int64) span.Instant {
	if seconds == 0 {
		return by
	}
	after, _ := slices.BinarySearchFunc(t, by, func(s span.Span, by span.Instant) int {
		if s.Start < by {
			return -1
		}
		return 1
	})
	for i := after - 1; i >= 0; i-- {
		if t[i].End <= by.Add(-seconds) {
			break
		}
		by = min(by, t[i].Start)
	}
	return by.Add(-seconds)
}

// take returns the timeline with the channel busy during w too.
func (t timeline) take(w span.Span) timeline {
	if w.Empty() {
		return t
	}
	i, _ := slices.BinarySearchFunc(t, w.Start, func(s span.Span, at span.Instant) int {
		if s.End < at {
			return -1
		}
		return 1
	})
	end := i
	for ; end < len(t) && t[end].Start <= w.End; end++ {
		w.Start, w.End = min(w.Start, t[end].Start), max(w.End, t[end].End)
	}
	return slices.Replace(t, i, end, w)
}
