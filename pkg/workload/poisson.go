package workload

import "math/rand/v2"

// Arrivals gives the times at which work comes, in seconds since the beginning; each is at
// least the one before. It never ends.
type Arrivals interface {
	Next() float64
}

// Poisson is Arrivals that do not depend on each other.
type Poisson struct {
	chance *rand.Rand
	gap    float64
	at     float64
}

// NewPoisson gives arrivals that are gap seconds apart in the mean; the gaps are exponential.
func NewPoisson(chance *rand.Rand, gap float64) *Poisson {
	return &Poisson{chance: chance, gap: gap}
}

// Next gives the next arrival.
func (p *Poisson) Next() float64 {
	p.at += p.gap * p.chance.ExpFloat64()
	return p.at
}
