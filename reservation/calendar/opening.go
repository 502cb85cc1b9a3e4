// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// never is an instant before all others.
const never = span.Instant(math.MinInt64)

// opening is a gap of one host in which a query fits: every start from first to last is
// possible, and the host is free throughout [begin, end).
type opening struct {
	first, last, begin, end span.Instant
}

func compareSpans(a, b span.Span) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

// firstOpenings is the largest number of openings for which memory is allocated in advance.
const firstOpenings = 1024

// openings returns the gaps of hosts that contain a start in [from, to].
func (c *Calendar) openings(q *Query, hosts hostset.Set, from, to span.Instant) []opening {
	if to < from {
		return nil
	}
	found := make([]opening, 0, min(hosts.Count(), firstOpenings))
	for host := range hosts.All() {
		found = c.appendOpenings(found, q, host, from, to)
	}
	return found
}

// appendOpenings appends the gaps of a host in which the query can start between from and to.
func (c *Calendar) appendOpenings(found []opening, q *Query, host int, from, to span.Instant) []opening {
	busy, usable := c.lanes[host].busy(), q.availableFrom(host)
	i := busy.endingAfter(from)
	begin := never
	if i > 0 {
		begin = busy[i-1].End
	}
	for {
		end := span.Forever
		if i < len(busy) {
			end = busy[i].Start
		}
		open := opening{begin: max(begin, usable), end: end}
		open.first, open.last = max(open.begin, from), min(end-span.Instant(q.Duration), to)
		if open.first <= open.last {
			found = append(found, open)
		}
		if i == len(busy) || busy[i].End > to {
			return found
		}
		begin = busy[i].End
		i++
	}
}

// levels iterates over the times at which the number of open hosts changes, each with the number
// from then on. The last number is 0.
func levels(openings []opening) iter.Seq2[span.Instant, int] {
	enter, leave := make([]span.Instant, len(openings)), make([]span.Instant, len(openings))
	for i, o := range openings {
		enter[i], leave[i] = o.first, o.last+1
	}
	slices.Sort(enter)
	slices.Sort(leave)
	return func(yield func(span.Instant, int) bool) {
		entered := 0
		for left := 0; left < len(leave); {
			at := leave[left]
			if entered < len(enter) {
				at = min(at, enter[entered])
			}
			for entered < len(enter) && enter[entered] == at {
				entered++
			}
			for left < len(leave) && leave[left] == at {
				left++
			}
			if !yield(at, entered-left) {
				return
			}
		}
	}
}
