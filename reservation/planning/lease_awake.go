// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// leasePlanNow decides on a lease that is to start now. If hosts sleep, it starts as early as each
// reservation gets the most: now, or when hosts have booted. Its end is the requested one, unless
// EndFollows. The refusal is that for a start now.
func leasePlanNow(v View, req reservation.LeaseRequest, w span.Span) (LeasePlan, error) {
	best, err := leasePlanAt(v, req, w)
	if refusal, is := errors.AsType[*reservation.Refusal](err); err != nil && !(is && mayStartLater(v, req, refusal)) {
		return best, err
	}
	for _, wake := range wakesOf(v, req, w) {
		if err == nil && best.full(req) || v.effort.over() {
			break
		}
		late := span.Span{Start: wake, End: w.End}
		if req.EndFollows {
			late.End = wake.Add(w.Seconds())
		}
		p, refused := leasePlanAt(v, req, late)
		if refused != nil || err == nil && slices.Compare(p.quantities(), best.quantities()) <= 0 {
			continue
		}
		best, err = p, nil
		for i := range best.Members {
			best.Members[i].DelayedByBoot = true
		}
	}
	return best, err
}

// quantities returns what each reservation gets, in order.
func (p *LeasePlan) quantities() []int {
	list := make([]int, len(p.Members))
	for i, m := range p.Members {
		list[i] = m.Terms.Quantity
	}
	return list
}

// full reports whether each reservation gets its Max.
func (p *LeasePlan) full(req reservation.LeaseRequest) bool {
	for i, m := range p.Members {
		if m.Terms.Quantity < req.Members[i].Max {
			return false
		}
	}
	return true
}

// wakesOf returns the instants in w, at most mostStarts, at which sleeping hosts that match a reservation of the lease
// can be awake, in order.
func wakesOf(v View, req reservation.LeaseRequest, w span.Span) (wakes []span.Instant) {
	t := leaseTry{LeaseRequest: req, span: w}
	for _, m := range req.Members {
		if m.Kind == reservation.Addresses {
			continue
		}
		if s, err := t.searchFor(v, m); err == nil {
			wakes = append(wakes, s.wakes...)
		}
	}
	slices.Sort(wakes)
	wakes = slices.Compact(wakes)
	if !req.EndFollows {
		wakes = slices.DeleteFunc(wakes, func(wake span.Instant) bool { return wake >= w.End })
	}
	for i := 0; len(wakes) > mostStarts && i < mostStarts; i++ { // spread over all of them, with the last
		wakes[i] = wakes[(i+1)*len(wakes)/mostStarts-1]
	}
	return wakes[:min(len(wakes), mostStarts)]
}
