package booking

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// envelope returns claims that hold, on each host and at each instant, the larger of two amounts:
// that of the first old claims, and that of the other claims.
func envelope(claims []reservation.Claim, old int) []reservation.Claim {
	byHost := make(map[string][]int)
	var hosts []string
	for i, c := range claims {
		if byHost[c.Host] == nil {
			hosts = append(hosts, c.Host)
		}
		byHost[c.Host] = append(byHost[c.Host], i)
	}
	var larger []reservation.Claim
	for _, host := range hosts {
		var times []span.Instant
		for _, i := range byHost[host] {
			times = append(times, claims[i].Span.Start, claims[i].Span.End)
		}
		slices.SortFunc(times, cmp.Compare)
		times = slices.Compact(times)
		for t := range len(times) - 1 {
			piece := span.Span{Start: times[t], End: times[t+1]}
			before, after, held := 0, 0, false
			for _, i := range byHost[host] {
				if !claims[i].Span.Covers(piece) {
					continue
				}
				held = true
				if i < old {
					before += claims[i].Slices
				} else {
					after += claims[i].Slices
				}
			}
			if held {
				larger = append(larger, reservation.Claim{Host: host, Span: piece, Slices: max(before, after)})
			}
		}
	}
	return larger
}
