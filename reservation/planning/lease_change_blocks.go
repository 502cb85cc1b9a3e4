// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// BlocksOfChange returns the claims, other than those of the reservations that change, on all hosts that
// a change of a lease may use; none if it would be refused without them too. The view contains the
// reservations of the lease.
func BlocksOfChange(v View, l reservation.LeaseRecord, c reservation.LeaseChange) (blocks []reservation.Block) {
	p := &leaseChange{LeaseChange: differing(l, c), now: v.Now, from: l}
	if p.to = l.Span; p.check() != nil {
		return nil
	}
	open, apart := v, v
	open.Calendar = v.Calendar.Unclaimed()
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if !r.Status.Live() {
			continue
		}
		if p.affects(r, p.of(r.ID)) {
			apart = apart.Without(r)
			for _, claim := range v.Hosts.Claims(r, r.Claims) {
				if open.Calendar.Add(claim) != nil {
					return nil
				}
			}
		}
	}
	if _, _, err := PlanLeaseChange(open, l, c); err != nil {
		return nil
	}
	for i := range l.Reservations {
		r := &l.Reservations[i]
		if m := p.of(r.ID); r.Status.Live() && r.Kind != reservation.Addresses && p.affects(r, m) {
			blocks = append(blocks, p.blocks(apart, *r, m)...)
		}
	}
	slices.SortFunc(blocks, func(a, b reservation.Block) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Span.End, b.Span.End))
	})
	blocks = slices.Compact(blocks)
	return blocks[:min(len(blocks), reservation.MaxBlocks)]
}

// blocks returns the claims in the view on the hosts that one reservation has, or may get.
func (p *leaseChange) blocks(v View, r reservation.Reservation, m *reservation.MemberChange) []reservation.Block {
	terms, start := r.Terms, r.Span.Start
	if m != nil {
		_, terms = appliedTo(r.Membership, terms, m)
		fill(&terms, v.Defaults)
	}
	if p.moved {
		start = max(p.to.Start, p.now)
	}
	plan, err := newChangePlan(v, r, Plan{Terms: terms, Span: span.Span{Start: start, End: p.to.End}})
	if err != nil {
		return nil
	}
	hosts := hostset.New(v.Calendar.Hosts())
	if plan.pinned() {
		hosts = plan.search.view.hostsOf(&plan.from)
	}
	if !plan.pinned() || m != nil {
		hosts.Unite(plan.search.query.Hosts)
	}
	return plan.search.refusing().blocks(plan.search.request.window, hosts)
}
