// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Envelope returns claims that hold, on each host and at each instant, the larger of what before
// and after hold there.
func Envelope(before, after []calendar.Claim) []calendar.Claim {
	type sides [2][]calendar.Claim
	byHost := make(map[int]*sides)
	for side, claims := range [2][]calendar.Claim{before, after} {
		for _, c := range claims {
			if byHost[c.Host] == nil {
				byHost[c.Host] = new(sides)
			}
			byHost[c.Host][side] = append(byHost[c.Host][side], c)
		}
	}
	var larger []calendar.Claim
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		of := byHost[host]
		for _, piece := range pieces(slices.Concat(of[0], of[1])) {
			old, held, whole := sum(of[0], piece)
			next, alsoHeld, alsoWhole := sum(of[1], piece)
			switch {
			case whole || alsoWhole:
				larger = append(larger, calendar.Claim{Host: host, Span: piece})
			case held || alsoHeld:
				larger = append(larger, calendar.Claim{Host: host, Span: piece, Slice: old.Max(next)})
			}
		}
	}
	return larger
}

// pieces returns the spans between the instants at which one of the claims begins or ends.
func pieces(claims []calendar.Claim) (list []span.Span) {
	var times []span.Instant
	for _, c := range claims {
		times = append(times, c.Span.Start, c.Span.End)
	}
	slices.SortFunc(times, cmp.Compare)
	times = slices.Compact(times)
	for i := range len(times) - 1 {
		list = append(list, span.Span{Start: times[i], End: times[i+1]})
	}
	return list
}

// sum returns what claims on one host hold throughout a piece: the sum of the slices, whether there
// are any claims, and whether one of them holds the whole host.
func sum(claims []calendar.Claim, piece span.Span) (slices resource.Vector, held, whole bool) {
	for _, c := range claims {
		if c.Span.Covers(piece) {
			slices, held, whole = slices.Add(c.Slice), true, whole || c.Whole()
		}
	}
	return slices, held, whole
}
