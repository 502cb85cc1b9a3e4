// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
)

// Repair makes the ranking that of the hosts among in the states s, as Rank with the same weighers, request
// and instant would. s must have the hosts and the release of Nova of the ranking's states. changed contains,
// in ascending order, the hosts that differ between the states, and those that only one of the rankings has.
//
// It returns false if the result is not certain to be that of Rank. The ranking is then of no use.
func (k *Ranking) Repair(s *inventory.States, changed []int, among hostset.Set) bool {
	if len(k.hosts) < 2 {
		return false
	}
	k.states = s
	k.admit(changed, among)
	if len(k.hosts) < 2 {
		return false
	}
	changed = slices.DeleteFunc(slices.Clone(changed), func(host int) bool { return !among.Has(host) })
	places, raw := make([]int, len(changed)), make([]float64, len(changed))
	for n, host := range changed {
		places[n], _ = slices.BinarySearch(k.hosts, host)
	}
	scaled := false
	for i := range k.parts {
		p := &k.parts[i]
		p.Weigh(s, k.request, k.now, changed, raw)
		// The basis is read after the weights, because one that has been replaced does not return.
		if basis := p.Weighted.basis(s, k.request, k.now); basis == nil || basis != p.basis {
			return false
		}
		scaled = p.replace(places, raw) || scaled
	}
	if scaled {
		clear(k.weights)
		k.estimate()
		return true
	}
	for _, at := range places {
		k.weights[at] = k.sum(at)
	}
	return true
}

// admit adds the changed hosts that are new among those of the ranking, with any weights, and removes those that
// are not among them any more.
func (k *Ranking) admit(changed []int, among hostset.Set) {
	for _, host := range changed {
		at, there := slices.BinarySearch(k.hosts, host)
		switch is := among.Has(host); {
		case is && !there:
			k.hosts, k.weights = slices.Insert(k.hosts, at, host), slices.Insert(k.weights, at, 0)
			for i := range k.parts {
				p := &k.parts[i]
				p.raw = slices.Insert(p.raw, at, p.low)
			}
		case !is && there:
			k.hosts, k.weights = slices.Delete(k.hosts, at, at+1), slices.Delete(k.weights, at, at+1)
			for i := range k.parts {
				p := &k.parts[i]
				p.unbound = p.unbound || p.bounds(p.raw[at])
				p.raw = slices.Delete(p.raw, at, at+1)
			}
		}
	}
}

// bounds reports whether a raw weight is the least or the greatest, unless Min or Max determines that.
func (p *part) bounds(x float64) bool {
	return x == p.low && p.Min == nil || x == p.high && p.Max == nil
}

// replace sets the raw weights of the hosts with these places in Ranking.hosts. It reports whether this has
// changed low or high, and with them the contribution on all hosts.
func (p *part) replace(places []int, raw []float64) (scaled bool) {
	for n, at := range places {
		was, x := p.raw[at], raw[n]
		if p.Min != nil {
			x = max(x, *p.Min)
		}
		if p.Max != nil {
			x = min(x, *p.Max)
		}
		p.raw[at] = x
		p.unbound = p.unbound || x != was && (p.bounds(was) || x < p.low || x > p.high)
	}
	if !p.unbound {
		return false
	}
	low, high := p.low, p.high
	p.low, p.high = p.clamp(p.raw)
	p.unbound = false
	return p.low != low || p.high != high
}
