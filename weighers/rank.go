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
	states       *inventory.States
	request      *placing.Request
	now          span.Instant
	hosts        []int
	weights, raw []float64 // by index in hosts; raw are those of one weigher
	parts        []part
}

// part is a weigher's contribution: multiplier × (raw - low) / (high - low).
type part struct {
	Weighted
	own       *overrides // nil if every host has the same multiplier
	low, high float64
}

// Rank weighs hosts, which are indices in s in ascending order: the weight of each is the sum
// over the weighers of multiplier × normalized raw weight, added in their order
// (nova/weights.py get_weighed_objects). As in Nova, a single host is not weighed: its weight
// is 0.
func (k *Ranking) Rank(weighers []Weighted, s *inventory.States, r *placing.Request, now span.Instant, hosts []int) {
	k.states, k.request, k.now, k.hosts, k.parts = s, r, now, hosts, k.parts[:0]
	k.weights = slices.Grow(k.weights[:0], len(hosts))[:len(hosts)]
	clear(k.weights)
	if len(hosts) <= 1 {
		return
	}
	k.raw = slices.Grow(k.raw[:0], len(hosts))[:len(hosts)]
	own := overridden(s, weighers)
	for i, w := range weighers {
		if w.Multiplier == 0 && own[i] == nil || w.addsNothing(s, r) || !s.Nova().Has(w.Part) {
			continue
		}
		w.Weigh(s, r, now, hosts, k.raw)
		low, high := w.clamp(k.raw)
		p := part{Weighted: w, own: own[i], low: low, high: high}
		p.addTo(k.weights, hosts, k.raw)
		k.parts = append(k.parts, p)
	}
}

// addsNothing reports whether the weigher is known to add nothing, before it weighs.
func (w *Weighted) addsNothing(s *inventory.States, r *placing.Request) bool {
	i, can := w.Weigher.(indifferent)
	return can && w.Min == nil && w.Max == nil && i.Indifferent(s, r)
}

// Forget drops the references to the inputs and keeps the allocated memory for another use.
func (k *Ranking) Forget() {
	clear(k.parts)
	*k = Ranking{weights: k.weights, raw: k.raw, parts: k.parts[:0]}
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

// addTo adds the weigher's contribution to weights. raw holds the weigher's raw weights; raw[i] and
// weights[i] belong to the host with the index hosts[i]. The conversions keep the compiler from
// fusing the product with the sum: every machine computes Nova's numbers to the last bit.
func (p *part) addTo(weights []float64, hosts []int, raw []float64) {
	low, width := p.low, p.high-p.low
	weights = weights[:len(raw)]
	switch {
	case width == 0:
	case p.own != nil:
		for i, x := range raw {
			weights[i] += float64(p.multiplier(hosts[i]) * ((x - low) / width))
		}
	case width == 1:
		m := p.multiplier(0)
		for i, x := range raw {
			weights[i] += float64(m * (x - low))
		}
	default:
		m := p.multiplier(0)
		for i, x := range raw {
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
	if len(k.hosts) == 0 {
		return nil
	}
	top := k.weights[0]
	for _, w := range k.weights {
		if w > top {
			top = w
		}
	}
	var equal []int
	for i, w := range k.weights {
		if w == top {
			equal = append(equal, k.hosts[i])
		}
	}
	return equal
}

// Best returns at most n of the hosts for which wanted returns true, sorted by weight, the greatest
// first, then by name. A nil wanted means all hosts. It visits each host once and sorts only n.
func (k *Ranking) Best(n int, wanted func(host int) bool) []int {
	n = min(n, len(k.hosts))
	if n <= 0 {
		return nil
	}
	best := make([]int, 0, n) // indices in k.hosts; with n elements, a heap with the worst on top
	bar := math.Inf(-1)       // a weight that is not greater cannot be among the best
	for i, w := range k.weights {
		if w <= bar || wanted != nil && !wanted(k.hosts[i]) {
			continue
		}
		if len(best) < n {
			if best = append(best, i); len(best) < n {
				continue
			}
			for at := n/2 - 1; at >= 0; at-- {
				k.sink(best, at)
			}
		} else {
			best[0] = i
			k.sink(best, 0)
		}
		bar = k.weights[best[0]]
	}
	slices.SortFunc(best, k.compare)
	for i, at := range best {
		best[i] = k.hosts[at]
	}
	return best
}

// compare orders indices in k.hosts, the better first.
func (k *Ranking) compare(a, b int) int {
	return cmp.Or(cmp.Compare(k.weights[b], k.weights[a]), cmp.Compare(a, b))
}

// sink moves an element of the heap down to its place.
func (k *Ranking) sink(heap []int, at int) {
	for {
		worst := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(heap); child++ {
			if k.compare(heap[child], heap[worst]) > 0 {
				worst = child
			}
		}
		if worst == at {
			return
		}
		heap[at], heap[worst] = heap[worst], heap[at]
		at = worst
	}
}

// Weight returns the weight of a ranked host.
func (k *Ranking) Weight(host int) float64 {
	at, there := slices.BinarySearch(k.hosts, host)
	if !there {
		return 0
	}
	return k.weights[at]
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
