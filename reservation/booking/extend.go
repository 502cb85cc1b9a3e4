// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// planAlone is PlanChange for a reservation whose end concerns no other one. The refusal of an
// extension names the latest end that would be accepted.
func planAlone(v View, r reservation.Reservation, c Change) (Plan, error) {
	plan, err := PlanChange(v, r, c)
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused || c.End == nil || *c.End <= r.Span.End || c.Start != nil && *c.Start != r.Span.Start || c.Quantity != nil && *c.Quantity != r.Quantity {
		return plan, err
	}
	if from, promised := promisedFrom(r, refusal.BlockedBy); promised {
		refusal.Message += fmt.Sprintf("; its hosts are promised to others from %v on", from)
	}
	if latest := latestEnd(v, r, *c.End); latest > r.Span.End {
		refusal.LatestEnd = latest
		refusal.Message += fmt.Sprintf("; the latest end is %v", latest)
	}
	return plan, refusal
}

// latestEnd returns the latest end before asked with which r can keep its promise; the present end if
// there is no later one. If an end is possible, so are all ends before it: some thirty plans find it.
func latestEnd(v View, r reservation.Reservation, asked span.Instant) span.Instant {
	earlier := sort.Search(int(asked-r.Span.End), func(n int) bool { return n > 0 && canEnd(v, r, asked-span.Instant(n)) })
	return asked - span.Instant(earlier)
}

// canEnd reports whether the change of the end would be accepted.
func canEnd(v View, r reservation.Reservation, end span.Instant) bool {
	to := Plan{Terms: r.Terms, Span: span.Span{Start: r.Span.Start, End: end}}
	p, err := newChangePlan(v, r, to)
	if err != nil || p.limits() != nil {
		return false
	}
	claims, ok := p.claims()
	return ok && p.checkInstances(claims) == nil && p.refuseImage(claims) == nil
}

// promisedFrom returns the first start of the blocks after the end of r; false if r is not active on
// whole hosts, since others may use the same hosts before then, or if a block is on another host.
func promisedFrom(r reservation.Reservation, blocks []reservation.Block) (from span.Instant, ok bool) {
	if r.Status != reservation.Active || r.Kind != reservation.Hosts || len(blocks) == 0 {
		return 0, false
	}
	own, from := r.HostNames(), span.Forever
	for _, b := range blocks {
		if !slices.Contains(own, b.Host) || b.Span.Start < r.Span.End {
			return 0, false
		}
		from = min(from, b.Span.Start)
	}
	return from, true
}
