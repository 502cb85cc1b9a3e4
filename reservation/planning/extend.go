// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Extends reports whether the change moves the end of r to a later time, and changes nothing else that needs hosts.
func (c Change) Extends(r *reservation.Reservation) bool {
	c = c.differing(r)
	return c.End != nil && *c.End > r.Span.End && c.Start == nil && c.Quantity == nil && c.HostProperties == nil && c.Resources == nil && c.Affinity == nil
}

// NameLatestEnd adds the latest end of r before the one that was asked for to its refusal.
func NameLatestEnd(refusal *reservation.Refusal, v View, r reservation.Reservation, asked span.Instant) {
	if from, promised := promisedFrom(r, refusal.BlockedBy); promised {
		refusal.Message += fmt.Sprintf("; its hosts are promised to others from %v on", from)
	}
	addLatestEnd(refusal, r.Span.End, asked, func(end span.Instant) bool { return canEnd(v, r, end) })
}

// addLatestEnd adds the latest end before asked that is possible to a refusal; nothing if none after the
// present end is. If an end is possible, so are all ends before it: some thirty tries find it.
func addLatestEnd(refusal *reservation.Refusal, present, asked span.Instant, possible func(end span.Instant) bool) {
	earlier := sort.Search(int(asked-present), func(n int) bool { return n > 0 && possible(asked-span.Instant(n)) })
	if latest := asked - span.Instant(earlier); latest > present {
		refusal.LatestEnd = latest
		refusal.Message += fmt.Sprintf("; the latest end is %v", latest)
	}
}

// EndAfter returns the end that a change asks for; extends reports whether it is later than that of the
// lease, whose start stays.
func EndAfter(c reservation.LeaseChange, l reservation.LeaseRecord) (asked span.Instant, extends bool) {
	switch {
	case c.Deadline != nil || c.Start != nil && *c.Start/minute != l.Span.Start/minute:
		return 0, false
	case c.Duration != 0:
		asked = l.Span.Start.Add(c.Duration)
	case c.End != nil:
		asked = *c.End
	}
	return asked, asked > l.Span.End
}

// NameLatestEndOfLease is NameLatestEnd for a lease, whose reservations the view contains.
func NameLatestEndOfLease(refusal *reservation.Refusal, v View, l reservation.LeaseRecord, c reservation.LeaseChange, asked span.Instant) {
	if len(l.Reservations) == 1 {
		if from, promised := promisedFrom(l.Reservations[0], refusal.BlockedBy); promised {
			refusal.Message += fmt.Sprintf("; its hosts are promised to others from %v on", from)
		}
	}
	v = v.bounded(explaining * mostLooked)
	named := *refusal
	addLatestEnd(&named, l.Span.End, asked, func(end span.Instant) bool {
		shorter := c
		shorter.End, shorter.Duration = &end, 0
		_, _, err := PlanLeaseChange(v, l, shorter)
		return err == nil || v.effort.over()
	})
	if !v.effort.over() { // otherwise the latest end is unknown
		*refusal = named
	}
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
