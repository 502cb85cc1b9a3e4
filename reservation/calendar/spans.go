// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// spans is a set of instants as sorted spans that neither overlap nor touch.
type spans []span.Span

// endingAfter returns the index of the first span that ends after t.
func (s spans) endingAfter(t span.Instant) int {
	return sort.Search(len(s), func(i int) bool { return s[i].End > t })
}

// free reports whether no instant of w is in the set.
func (s spans) free(w span.Span) bool {
	i := s.endingAfter(w.Start)
	return i == len(s) || s[i].Start >= w.End
}

// covers reports whether every instant of w is in the set.
func (s spans) covers(w span.Span) bool {
	i := s.endingAfter(w.Start)
	return i < len(s) && s[i].Covers(w)
}

// with returns the set plus w, merged with the spans that w overlaps or touches.
func (s spans) with(w span.Span) spans {
	first := sort.Search(len(s), func(i int) bool { return s[i].End >= w.Start })
	last := first
	for last < len(s) && s[last].Start <= w.End {
		w.Start, w.End = min(w.Start, s[last].Start), max(w.End, s[last].End)
		last++
	}
	return slices.Replace(s, first, last, w)
}

// without returns the set without the instants of w.
func (s spans) without(w span.Span) spans {
	first := s.endingAfter(w.Start)
	last := first
	var rest []span.Span
	for last < len(s) && s[last].Start < w.End {
		if before := (span.Span{Start: s[last].Start, End: w.Start}); !before.Empty() {
			rest = append(rest, before)
		}
		if after := (span.Span{Start: w.End, End: s[last].End}); !after.Empty() {
			rest = append(rest, after)
		}
		last++
	}
	return slices.Replace(s, first, last, rest...)
}
