// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// instancesOn returns the ids of the instances that run in the reservation on a host,
// according to the inventory; none before the start.
func (p *changePlan) instancesOn(host string) []string {
	number, known := p.search.view.Hosts.numbers[host]
	if !known || !p.pinned() {
		return nil
	}
	h := p.search.view.Hosts.Host(number)
	if h == nil {
		return nil
	}
	var ids []string
	for i := range h.Instances {
		if h.Instances[i].ReservationID() == p.from.ID {
			ids = append(ids, h.Instances[i].ID)
		}
	}
	return ids
}

// keepShares returns how much of each kept claim stays, at most quantity in total: first the parts
// that the reservation's instances use on hosts that work, then the rest in order.
func (p *changePlan) keepShares(quantity int) []int {
	shares, used := make([]int, len(p.kept)), make(map[int]int)
	for _, k := range p.kept {
		used[k.host] = len(p.instancesOn(p.search.view.Hosts.names[k.host]))
	}
	for i, k := range p.kept {
		if p.misses(k) {
			continue
		}
		shares[i] = min(k.count, used[k.host], quantity)
		used[k.host] -= shares[i]
		quantity -= shares[i]
	}
	if l := p.search.lying; l != nil && l.rule.Rule == reservation.TogetherSpread {
		p.ruled().shareInTurns(shares, quantity)
		return shares
	}
	for i, k := range p.kept {
		more := min(k.count-shares[i], quantity)
		shares[i] += more
		quantity -= more
	}
	return shares
}

// checkInstances fails with a Conflict fault if claims release a host, or a part of one, that
// instances of the reservation still use: nothing would remove them, and they would block the
// next reservation.
func (p *changePlan) checkInstances(claims []reservation.Claim) error {
	before, after := p.activeNow(p.from.Claims), p.activeNow(claims)
	for _, host := range hostNames(before) {
		had, has := countOn(before, host), countOn(after, host)
		own := p.instancesOn(host)
		if has >= had || len(own) <= has {
			continue
		}
		names := strings.Join(shortened(own), ", ")
		what := fmt.Sprintf("delete its instances on host %s first: %s", host, names)
		if has > 0 {
			what = fmt.Sprintf("delete %d of its instances on host %s first: it would keep %d there, and has %s", len(own)-has, host, has, names)
		}
		return &fault.Error{Kind: fault.Conflict, Field: "quantity", Message: "the reservation would release hosts that its instances use; " + what}
	}
	return nil
}

// activeNow returns the claims whose span contains now.
func (p *changePlan) activeNow(claims []reservation.Claim) []reservation.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c reservation.Claim) bool { return !c.Span.Contains(p.search.view.Now) })
}
