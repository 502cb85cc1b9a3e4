// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Past is what a reservation held: its claims, if it is over, and those that it has released.
type Past struct {
	// Reservation has no claims if it is live. Of its events it has only the last start.
	Reservation Reservation
	Released    []ReleasedClaim
}

// ReleasedClaim is a claim that a reservation held until a change released it. It ends with the change
// at the latest.
type ReleasedClaim struct {
	Claim
	// Version is that of the reservation after the change.
	Version int64
}

// PastQuery selects pasts.
type PastQuery struct {
	Overlaps  span.Span
	ProjectID string // empty selects all
	// After is the last reservation of the page before; the zero value asks for the first page.
	After PastMark
	Limit int // the largest number of reservations; a page may end earlier
}

// PastMark is a place in the list of pasts, which is sorted by start, then id.
type PastMark struct {
	Start span.Instant
	ID    string
}

// PastHosts selects the past claims on some hosts.
type PastHosts struct {
	Overlaps span.Span
	// Hosts are their names; if there are none, they are those after After, up to Last unless it is
	// empty.
	Hosts       []string
	After, Last string
	Limit       int // the largest number of claims
}

// Kept tells which part of the past is kept in full. Of what was held before From, a purge may have
// removed claims, and kept only their sums.
type Kept struct {
	From   span.Instant // 0 if nothing has been purged
	Purges int64        // grows with each purge
}

// Released returns the parts before an instant of claims that next, the claims of the same reservation
// after a change at that instant, do not contain, sorted by host, then start.
func Released(claims, next []Claim, at span.Instant) (released []Claim) {
	type place struct {
		host  string
		whole bool
	}
	type turn struct {
		at    span.Instant
		count int
	}
	turns := make(map[place][]turn)
	count := func(claims []Claim, times int) {
		for _, c := range claims {
			if end := min(c.Span.End, at); c.Span.Start < end {
				p, n := place{c.Host, c.Slices == 0}, max(c.Slices, 1)*times
				turns[p] = append(turns[p], turn{c.Span.Start, n}, turn{end, -n})
			}
		}
	}
	count(claims, 1)
	count(next, -1)
	for p, list := range turns {
		slices.SortFunc(list, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
		from, level := span.Instant(0), 0
		for _, t := range list {
			if level > 0 && from < t.at {
				c := Claim{Host: p.host, Span: span.Span{Start: from, End: t.at}}
				if !p.whole {
					c.Slices = level
				}
				released = append(released, c)
			}
			from, level = t.at, level+t.count
		}
	}
	slices.SortFunc(released, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Slices, b.Slices))
	})
	return released
}
