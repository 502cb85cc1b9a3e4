// SPDX-License-Identifier: Apache-2.0

package weighers

import "math"

// A weight is a sum of quotients, and a division takes several times as long as a multiplication. So Ranking
// first multiplies by reciprocals, which is wrong in the last bits, and computes Nova's numbers only for the
// hosts that may be among the best.

const (
	// mostRough is the largest number of parts for which the margin below is proven.
	mostRough = 64
	// roughError bounds the error of the sum of that many parts, relative to the sum of their
	// multipliers. A part, which is at most its multiplier, has four roundings too many or too few, and
	// each sum 63, each of at most 2^-53 of what is summed so far: 4·2^-53 + 2·63·2^-53 < 2^-45.
	roughError = 1.0 / (1 << 45)
	// Products between these do not leave the range in which the relative error is constant.
	leastFactor, mostFactor = 1e-150, 1e150
)

// estimate sets the weights with a margin, or exactly where the margin could be wrong.
func (k *Ranking) estimate() {
	k.margin = 0
	total := 0.0
	for i := range k.parts {
		p := &k.parts[i]
		if p.low == p.high {
			continue
		}
		m := math.Abs(p.multiplier(0))
		factor := m / math.Abs(p.high-p.low)
		if p.own != nil || len(k.parts) > mostRough || !(leastFactor < m && m < mostFactor && leastFactor < factor && factor < mostFactor) {
			k.settle()
			return
		}
		total += m
	}
	for i := range k.parts {
		if p := &k.parts[i]; p.low != p.high {
			p.addRoughlyTo(k.weights)
		}
	}
	k.margin = total * roughError
}

// addRoughlyTo is addTo without divisions.
func (p *part) addRoughlyTo(weights []float64) {
	low, factor := p.low, p.multiplier(0)/(p.high-p.low)
	weights = weights[:len(p.raw)]
	for i, x := range p.raw {
		weights[i] += (x - low) * factor
	}
}

// settle computes all weights exactly.
func (k *Ranking) settle() {
	clear(k.weights)
	for i := range k.parts {
		k.parts[i].addTo(k.weights, k.hosts)
	}
	k.margin = 0
}

// exact returns the exact weight of the host with that index in k.hosts.
func (k *Ranking) exact(at int) float64 {
	if k.margin == 0 {
		return k.weights[at]
	}
	return k.sum(at)
}

// sum adds up the exact weight of the host with that index in k.hosts.
func (k *Ranking) sum(at int) float64 {
	weight := 0.0
	for i := range k.parts {
		if p := &k.parts[i]; p.low != p.high {
			weight += float64(p.multiplier(k.hosts[at]) * ((p.raw[at] - p.low) / (p.high - p.low)))
		}
	}
	return weight
}
