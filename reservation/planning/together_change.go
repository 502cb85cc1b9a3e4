// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
)

// This file has how the hosts of a changed reservation lie to each other. It keeps hosts where they are; a required rule
// decides which come new. Only a pending reservation moves to other hosts for it.

// hold notes what the reservation keeps on each value.
func (p ruledChange) hold() {
	l := p.search.lying
	if l == nil {
		return
	}
	l.held = make([]int, len(l.values)+1)
	for _, k := range p.kept {
		l.held[l.place(k.host)] += k.count
	}
}

// options returns the plans from which the change takes the first that is possible.
func (p ruledChange) options() []*changePlan {
	l := p.search.lying
	switch {
	case l == nil:
		return []*changePlan{p.changePlan}
	case l.rule.Rule == reservation.TogetherSpread && !l.rule.Preferred && !p.pinned():
		return []*changePlan{p.changePlan, p.afresh()}
	case l.rule.Rule != reservation.TogetherSame:
		return []*changePlan{p.changePlan}
	}
	var list []*changePlan
	ones := p.search.ruled().onEach()
	for _, value := range l.roomiest(make([]int, len(l.values))) {
		switch has := l.held[value] > 0; {
		case has && len(list) == 0:
			list = append(list, p.on(ones[value], value, p.pinned() || l.rule.Preferred))
		case !p.pinned() && !l.rule.Preferred:
			list = append(list, p.on(ones[value], value, false))
		}
	}
	if l.rule.Preferred || len(list) == 0 || p.search.ruled().broken(p.from.Claims) {
		list = append(list, p.changePlan)
	}
	return list
}

// on returns the plan whose new hosts have one value. all is whether it also keeps hosts with other values.
func (p ruledChange) on(one *search, value int, all bool) *changePlan {
	on := *p.changePlan
	on.search, on.all = one, p.search
	if !all {
		on.kept = slices.DeleteFunc(slices.Clone(p.kept), func(k keptClaim) bool {
			return p.search.lying.of[k.host] != value && p.search.view.Hosts.Host(k.host) != nil
		})
	}
	return &on
}

// afresh returns the plan that keeps no host.
func (p ruledChange) afresh() *changePlan {
	other, s := *p.changePlan, *p.search
	l := *s.lying
	l.held, s.lying = nil, &l
	other.search, other.kept = &s, nil
	return &other
}

// lies reports whether claims are as a required rule asks. If the hosts of the reservation do not lie so already, since
// somebody has changed their properties, the change need not mend that.
func (p ruledChange) lies(claims []reservation.Claim) bool {
	whole := p.whole()
	return whole.lying == nil || whole.lying.rule.Preferred || !whole.ruled().broken(claims) || whole.ruled().broken(p.from.Claims)
}

// whole returns the search on all hosts.
func (p ruledChange) whole() *search {
	if p.all != nil {
		return p.all
	}
	return p.search
}

// possible returns the claims of the changed reservation; false if there is no room, its instances use hosts that it would
// release, the image cannot be there in time, or a required rule would be broken.
func (p *changePlan) possible() ([]reservation.Claim, bool) {
	claims, ok := p.claims()
	if !ok || p.checkInstances(claims) != nil {
		return nil, false
	}
	imaged, ok := p.withImage(claims)
	return imaged, ok && p.ruled().lies(imaged)
}

// mostOfOptions returns the largest quantity with which one of the options is possible. Of spread hosts it is one of the
// mostStarts largest; 0 if none of them is possible.
func (p ruledChange) mostOfOptions(options []*changePlan) (most int) {
	for _, o := range options {
		most = max(most, o.largestAlone())
	}
	if !p.search.ruled().spreadRequired() {
		return most
	}
	for fewer := most; fewer >= max(p.search.lying.rule.Values, most-mostStarts); fewer-- {
		if p.with(fewer).anyPossible() {
			return fewer
		}
	}
	return 0
}

// with returns the plan for another quantity.
func (p *changePlan) with(quantity int) *changePlan {
	other := *p
	other.search, other.to.Terms.Quantity = p.search.with(quantity), quantity
	return &other
}

// anyPossible reports whether one of the options is possible.
func (p *changePlan) anyPossible() bool {
	return slices.ContainsFunc(p.ruled().options(), func(o *changePlan) bool {
		_, ok := o.possible()
		return ok
	})
}

// shareInTurns adds to what stays of each kept claim up to quantity more, in turns over the values.
func (p ruledChange) shareInTurns(shares []int, quantity int) {
	l := *p.search.lying
	room := make([]int, len(l.values)+1)
	l.held = make([]int, len(room))
	for i, k := range p.kept {
		l.held[l.place(k.host)] += shares[i]
		room[l.place(k.host)] += k.count - shares[i]
	}
	more := l.shares(room, quantity)
	for i, k := range p.kept {
		n := min(k.count-shares[i], more[l.place(k.host)])
		shares[i], more[l.place(k.host)] = shares[i]+n, more[l.place(k.host)]-n
	}
}

// explainLying states in a refusal that a rule alone is the obstacle, if it is.
func (p ruledChange) explainLying(r *reservation.Refusal) {
	to := p.to
	if to.Terms.Together.ApartFrom = ""; p.to.Terms.Together.ApartFrom != "" && canChange(p.view, p.from, to.Terms, to.Span) {
		r.Constraint, r.Message = reservation.HostsTogether, p.search.refusing().noRoomApart(r)
		return
	}
	if p.search.lying == nil || p.search.lying.rule.Preferred {
		return
	}
	if to.Terms.Together = (reservation.Together{}); canChange(p.view, p.from, to.Terms, to.Span) {
		r.Constraint, r.Message = reservation.HostsTogether, p.search.refusing().noRoomLying(r.Wanted)
	}
}
