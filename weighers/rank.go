// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Ranking is the order of hosts for a request. It keeps references to its inputs. The zero
// Ranking is ready for use, and any can be used again.
type Ranking struct {
	states  *inventory.States
	request *placing.Request
	now     span.Instant
	hosts   []int
	weights []float64 // by index in hosts; each is at most margin off
	margin  float64
	parts   []part
	unused  [][]float64 // raw weights of earlier parts, whose memory new ones use
}

// part is a weigher's contribution: multiplier × (raw - low) / (high - low).
type part struct {
	Weighted
	own       *overrides // nil if every host has the same multiplier
	basis     any        // of the raw weights, see based
	low, high float64
	unbound   bool      // low or high may have changed
	raw       []float64 // by index in hosts
}

// Rank weighs hosts, which are indices in s in ascending order: the weight of each is the sum
// over the weighers of multiplier × normalized raw weight, added in their order
// (nova/weights.py get_weighed_objects). As in Nova, a single host is not weighed: its weight
// is 0.
func (k *Ranking) Rank(weighers []Weighted, s *inventory.States, r *placing.Request, now span.Instant, hosts []int) {
	k.Forget()
	k.states, k.request, k.now, k.hosts = s, r, now, hosts
	k.weights = slices.Grow(k.weights, len(hosts))[:len(hosts)]
	clear(k.weights)
	if len(hosts) <= 1 {
		return
	}
	own := overridden(s, weighers)
	for i, w := range weighers {
		if w.Multiplier == 0 && own[i] == nil || w.addsNothing(s, r) || !s.Nova().Has(w.Part) {
			continue
		}
		p := part{Weighted: w, own: own[i], basis: w.basis(s, r, now), raw: k.memory(len(hosts))}
		w.Weigh(s, r, now, hosts, p.raw)
		p.low, p.high = w.clamp(p.raw)
		k.parts = append(k.parts, p)
	}
	k.estimate()
}

// memory returns a slice for the raw weights of so many hosts, with any content.
func (k *Ranking) memory(hosts int) (raw []float64) {
	if last := len(k.unused) - 1; last >= 0 {
		raw, k.unused = k.unused[last], k.unused[:last]
	}
	return slices.Grow(raw[:0], hosts)[:hosts]
}

// addsNothing reports whether the weigher is known to add nothing, before it weighs.
func (w *Weighted) addsNothing(s *inventory.States, r *placing.Request) bool {
	i, can := w.Weigher.(indifferent)
	return can && w.Min == nil && w.Max == nil && i.Indifferent(s, r)
}

// Forget drops the references to the inputs and keeps the allocated memory for another use.
func (k *Ranking) Forget() {
	for i := range k.parts {
		k.unused = append(k.unused, k.parts[i].raw)
	}
	clear(k.parts)
	*k = Ranking{weights: k.weights[:0], parts: k.parts[:0], unused: k.unused}
}

// clamp limits raw weights to Min and Max (nova/weights.py weigh_objects) and returns the
// values that become 0 and 1: Min and Max, or the least and the greatest (nova/weights.py
// normalize).
//
// It is one loop over the hosts in each case; slices.Min and slices.Max check for NaN and would
// take three times as long each.
func (w *Weighted) clamp(raw []float64) (low, high float64) {
	switch {
	case w.Min != nil && w.Max != nil:
		low, high = *w.Min, *w.Max
		for i, x := range raw {
			if x < low {
				raw[i] = low
			} else if x > high {
				raw[i] = high
			}
		}
	case w.Min != nil:
		low, high = *w.Min, *w.Min
		for i, x := range raw {
			if x > high {
				high = x
			} else if x < low {
				raw[i] = low
			}
		}
	case w.Max != nil:
		low, high = *w.Max, *w.Max
		for i, x := range raw {
			if x < low {
				low = x
			} else if x > high {
				raw[i] = high
			}
		}
	default:
		low, high = raw[0], raw[0]
		for _, x := range raw {
			if x < low {
				low = x
			} else if x > high {
				high = x
			}
		}
	}
	return low, high
}

// normal scales x so that low becomes 0 and high becomes 1; values outside stay outside. All
// become 0 if low equals high.
func normal(x, low, high float64) float64 {
	if low == high {
		return 0
	}
	return (x - low) / (high - low)
}

// addTo adds the weigher's contribution to weights. raw[i] and weights[i] belong to the host with the index
// hosts[i]. The conversions keep the compiler from fusing the product with the sum: every machine computes
// Nova's numbers to the last bit.
func (p *part) addTo(weights []float64, hosts []int) {
	low, width := p.low, p.high-p.low
	weights = weights[:len(p.raw)]
	switch {
	case width == 0:
	case p.own != nil:
		for i, x := range p.raw {
			weights[i] += float64(p.multiplier(hosts[i]) * ((x - low) / width))
		}
	case width == 1:
		m := p.multiplier(0)
		for i, x := range p.raw {
			weights[i] += float64(m * (x - low))
		}
	default:
		m := p.multiplier(0)
		for i, x := range p.raw {
			weights[i] += float64(m * ((x - low) / width))
		}
	}
}

// multiplier returns the multiplier on a host.
func (p *part) multiplier(host int) float64 {
	m := p.Multiplier
	if p.own != nil && p.own.hosts.Has(host) {
		m = p.own.values[host]
	}
	if p.Negated {
		return -m
	}
	return m
}

// Len returns the number of hosts.
func (k *Ranking) Len() int { return len(k.hosts) }

// Equals returns the indexes of the hosts with the greatest weight, in the order of their names.
func (k *Ranking) Equals() []int {
	best := k.best(1, nil)
	if len(best) == 0 {
		return nil
	}
	top := best[0].weight
	var equal []int
	for at, w := range k.weights {
		if w >= top-k.margin && k.exact(at) == top {
			equal = append(equal, k.hosts[at])
		}
	}
	return equal
}

// Best returns at most n of the hosts for which wanted returns true, sorted by weight, the greatest
// first, then by name. A nil wanted means all hosts. It visits each host once and sorts only n.
func (k *Ranking) Best(n int, wanted func(host int) bool) []int {
	best := k.best(n, wanted)
	hosts := make([]int, len(best))
	for i := range best {
		hosts[i] = k.hosts[best[i].at]
	}
	return hosts
}

// ranked is a host, by its index in Ranking.hosts, with its exact weight.
type ranked struct {
	at     int
	weight float64
}

// best is Best with weights.
func (k *Ranking) best(n int, wanted func(host int) bool) []ranked {
	n = min(n, len(k.hosts))
	if n <= 0 {
		return nil
	}
	near, bar := k.near(n, wanted)
	if k.margin > 0 && len(near) > n+manyNear {
		k.settle()
		near, bar = k.near(n, wanted)
	}
	best := make([]ranked, 0, len(near))
	for _, at := range near {
		if k.weights[at] >= bar-2*k.margin {
			best = append(best, ranked{at, k.exact(at)})
		}
	}
	slices.SortFunc(best, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.at, b.at)) })
	return best[:min(n, len(best))]
}

// manyNear is how many hosts more than are wanted may be near the best. With more of them, it takes less time to
// compute all weights exactly.
const manyNear = 256

// near returns indices in k.hosts, the n best among them, and the nth greatest weight, or -Inf. It stops where
// many are near the best.
func (k *Ranking) near(n int, wanted func(host int) bool) (near []int, bar float64) {
	greatest := make([]float64, 0, n) // with n elements, a heap with the least on top
	bar = math.Inf(-1)                // a weight that is not greater, within the margin of both, cannot be among the best
	for at, w := range k.weights {
		if w <= bar-2*k.margin || wanted != nil && !wanted(k.hosts[at]) {
			continue
		}
		if near = append(near, at); k.margin > 0 && len(near) > 2*n+manyNear {
			return near, bar
		}
		switch {
		case len(greatest) < n:
			if greatest = append(greatest, w); len(greatest) < n {
				continue
			}
			for i := n/2 - 1; i >= 0; i-- {
				sink(greatest, i)
			}
		case w > bar:
			greatest[0] = w
			sink(greatest, 0)
		}
		bar = greatest[0]
	}
	return near, bar
}

// sink moves an element of the heap down to its place.
func sink(heap []float64, at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(heap); child++ {
			if heap[child] < heap[least] {
				least = child
			}
		}
		if least == at {
			return
		}
		heap[at], heap[least] = heap[least], heap[at]
		at = least
	}
}

// Weight returns the weight of a ranked host.
func (k *Ranking) Weight(host int) float64 {
	at, there := slices.BinarySearch(k.hosts, host)
	if !there {
		return 0
	}
	return k.exact(at)
}

// Parts returns what each weigher adds to the weights of some hosts, by name. It weighs them
// again.
func (k *Ranking) Parts(hosts []int) []map[string]float64 {
	parts := make([]map[string]float64, len(hosts))
	for i := range parts {
		parts[i] = make(map[string]float64, len(k.parts))
	}
	ascending := slices.Sorted(slices.Values(hosts))
	raw := make([]float64, len(hosts))
	for i := range k.parts {
		p := &k.parts[i]
		p.Weigh(k.states, k.request, k.now, ascending, raw)
		p.clamp(raw)
		for n, host := range hosts {
			at, _ := slices.BinarySearch(ascending, host)
			// A weigher that is exact for the best only may now be exact for more hosts.
			within := min(max(raw[at], p.low), p.high)
			parts[n][p.Name()] += p.multiplier(host) * normal(within, p.low, p.high)
		}
	}
	return parts
}
