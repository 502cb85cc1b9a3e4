// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// PlanExtension decides on a change that does nothing but end r later, and that PlanChange refuses for lack of room: pending
// reservations that asked for any hosts have other hosts, at the same time. moved are these reservations after that. ok is false if
// none of the moves that it tries makes room, or if the change is another one.
//
// The view is the one that PlanChange has. Its Calendar must have what Movable returns.
func PlanExtension(v View, r reservation.Reservation, c Change) (plan Plan, moved []reservation.Reservation, ok bool) {
	if v.Movable == nil || !c.Extends(&r) || r.Image != "" {
		return Plan{}, nil, false
	}
	asked := v
	v = v.bounded(mostLooked)
	p := placing{view: v, left: mostPlaced, uncounted: r.Maintenance}
	may := func(x *reservation.Reservation) (span.Span, bool) {
		known := slices.ContainsFunc(p.movable, func(m *mover) bool { return m.of.ID == x.ID })
		return x.Span, x.ID != r.ID && !known && MayChangeHosts(x, v.Now, v.LeadTime)
	}
	p.find(span.Span{Start: max(r.Span.End, v.Now), End: *c.End}, v.hostsOf(&r), may)
	next := len(p.movable)               // they have its hosts after it
	if r.Status == reservation.Pending { // it may have other hosts too, if their neighbors move
		p.find(span.Span{Start: max(r.Span.Start, v.Now), End: *c.End}, v.all(), may)
	}
	if len(p.movable) == 0 {
		return Plan{}, nil, false
	}
	tries := slices.Collect(slices.Chunk(p.movable[:min(len(p.movable), mostTried)], 1))
	for _, some := range append(tries, p.movable[:next], p.movable) {
		if plan, moved, ok := p.extend(asked, &r, c, some); ok {
			return plan, moved, true
		}
	}
	return Plan{}, nil, false
}

// extend is PlanExtension for some of those that may move; the others stay.
func (p *placing) extend(asked View, r *reservation.Reservation, c Change, some []*mover) (plan Plan, moved []reservation.Reservation, ok bool) {
	open := p.view.Calendar.Fork()
	for _, x := range some {
		remove(open, x.held)
	}
	asked.Calendar = open.Fork()
	if !canEnd(asked, *r, *c.End) { // a refusal takes longer
		return Plan{}, nil, false
	}
	if plan, err := PlanChange(asked, *r, c); err == nil && p.makeRoom(open, r, plan, some) {
		return plan, p.moved(), true
	}
	return Plan{}, nil, false
}

// makeRoom places some reservations beside those of a plan for r, on a calendar that has neither. Those that are not
// in the way keep their hosts.
func (p *placing) makeRoom(open *calendar.Calendar, r *reservation.Reservation, plan Plan, some []*mover) bool {
	// A host may have become smaller since it was promised to r. Then others stay where they are.
	if open.Add(p.view.Hosts.Claims(r, plan.Claims)...) != nil {
		return false
	}
	p.asked.claims = plan.Claims
	away := slices.DeleteFunc(slices.Clone(some), func(x *mover) bool { return open.Add(x.held...) == nil })
	return len(away) <= mostMoved && p.placeList(open, away, p.place)
}
