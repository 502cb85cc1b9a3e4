// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Gaps returns for how many seconds, from an instant on, hosts are free at one stretch that overlaps w: the longest such stretch of
// each host, the longest first. A host without one is left out.
func (c *Calendar) Gaps(w span.Span, from span.Instant) (seconds []int64) {
	for _, l := range c.lanes {
		if longest := l.busy().longestGap(w, from); longest > 0 {
			seconds = append(seconds, longest)
		}
	}
	slices.SortFunc(seconds, func(a, b int64) int { return cmp.Compare(b, a) })
	return seconds
}

// longestGap returns the length of the longest stretch, from an instant on, that overlaps w and has no instant of the set; 0 if there is none.
func (s spans) longestGap(w span.Span, from span.Instant) (longest int64) {
	begin, i := from, s.endingAfter(w.Start)
	if i > 0 {
		begin = max(begin, s[i-1].End)
	}
	for ; begin < w.End; i++ {
		end := span.Forever
		if i < len(s) {
			end = s[i].Start
		}
		if end > w.Start {
			longest = max(longest, int64(end-begin))
		}
		if end >= w.End {
			break
		}
		begin = max(from, s[i].End)
	}
	return longest
}
