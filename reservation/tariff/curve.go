// SPDX-License-Identifier: Apache-2.0

package tariff

import (
	"sort"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Bounds of a Curve. With them, neither a sum nor a difference of costs overflows.
const (
	// MostSteps is the largest number of steps: a year of quarters of an hour.
	MostSteps = 366 * 24 * 4
	// Longest is how many seconds the last step may end after the first begins.
	Longest = 366 * 24 * 3600
	// MostPrice is the largest price of a step, and the smallest without its sign.
	MostPrice = 100_000_000_000
)

// Step is a price that holds throughout a span.
type Step struct {
	Span  span.Span
	Price int64
}

// Curve is a price by time. It does not change.
type Curve struct {
	steps  []Step
	before []int64 // the cost of all steps before each
}

// New returns the curve of steps, which are in order and do not overlap. The error is an Invalid fault.
func New(steps []Step) (*Curve, error) {
	if len(steps) == 0 {
		return nil, fault.New(fault.Invalid, "there are no prices")
	}
	if len(steps) > MostSteps {
		return nil, fault.New(fault.Invalid, "there are more than %d prices", MostSteps)
	}
	c := &Curve{steps: steps, before: make([]int64, len(steps))}
	for i, s := range steps {
		switch {
		case s.Span.Empty() || i > 0 && s.Span.Start < steps[i-1].Span.End:
			return nil, fault.New(fault.Invalid, "the price from %v to %v is empty, or begins before the one before it ends", s.Span.Start, s.Span.End)
		case s.Span.End > steps[0].Span.Start.Add(Longest):
			return nil, fault.New(fault.Invalid, "the prices last longer than %d days", Longest/(24*3600))
		case s.Price < -MostPrice || s.Price > MostPrice:
			return nil, fault.New(fault.Invalid, "a price is larger than %d", int64(MostPrice))
		case i > 0:
			c.before[i] = c.before[i-1] + steps[i-1].Price*steps[i-1].Span.Seconds()
		}
	}
	return c, nil
}

// Reading is a curve as its source had it.
type Reading struct {
	*Curve
	// Written is when the source wrote it.
	Written span.Instant
	// MaxAge is how many seconds after Written it is stale; 0 means never.
	MaxAge int64
}

// Stale reports whether the reading is too old.
func (r *Reading) Stale(now span.Instant) bool { return r.MaxAge > 0 && now > r.Written.Add(r.MaxAge) }

// Known returns the span from the first price to the last, which may have gaps.
func (c *Curve) Known() span.Span {
	return span.Span{Start: c.steps[0].Span.Start, End: c.steps[len(c.steps)-1].Span.End}
}

// Covered returns the end of the prices that are known from an instant on without a gap; the instant itself if none is
// known there.
func (c *Curve) Covered(from span.Instant) span.Instant {
	end := from
	for i := c.at(from); i < len(c.steps) && c.steps[i].Span.Start <= end; i++ {
		end = max(end, c.steps[i].Span.End)
	}
	return end
}

// at returns the index of the first step that ends after an instant.
func (c *Curve) at(t span.Instant) int {
	return sort.Search(len(c.steps), func(i int) bool { return c.steps[i].Span.End > t })
}
