// SPDX-License-Identifier: Apache-2.0

package workload

import "math/rand/v2"

// Arrivals is an endless sequence of arrival times, in seconds since the start and in order.
type Arrivals interface {
	Next() float64
}

// Poisson implements Arrivals with independent gaps.
type Poisson struct {
	chance *rand.Rand
	gap    float64
	at     float64
}

// NewPoisson returns arrivals with exponentially distributed gaps, whose mean is gap seconds.
func NewPoisson(chance *rand.Rand, gap float64) *Poisson {
	return &Poisson{chance: chance, gap: gap}
}

// Next returns the next arrival.
func (p *Poisson) Next() float64 {
	p.at += p.gap * p.chance.ExpFloat64()
	return p.at
}
