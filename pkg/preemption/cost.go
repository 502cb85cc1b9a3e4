// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"math"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CostOptions are the parameters of the costs.
type CostOptions struct {
	Period int64 // of partial_hour, in seconds; greater than 0
	// PriceSpec and PrioritySpec are the names of extra specs of flavors.
	PriceSpec, PrioritySpec string
}

// PartialHour is the name of the cost of paper 001.
const PartialHour = "partial_hour"

var costs = []struct {
	name string
	make func(name string, o CostOptions) (Cost, error)
}{
	{PartialHour, func(name string, o CostOptions) (Cost, error) {
		if o.Period <= 0 {
			return nil, fault.Field("cost_period", "must be at least a second")
		}
		return elapsed{name, launched, o.Period}, nil
	}},
	{"running_time", func(name string, _ CostOptions) (Cost, error) { return elapsed{name, launched, 0}, nil }},
	{"age", func(name string, _ CostOptions) (Cost, error) { return elapsed{name, created, 0}, nil }},
	{"price", func(name string, o CostOptions) (Cost, error) {
		if o.PriceSpec == "" {
			return nil, fault.Field("price_extra_spec", "must name an extra spec, because cost = price")
		}
		return valued{name, "millionths", o.PriceSpec, millionths}, nil
	}},
	{"priority", func(name string, o CostOptions) (Cost, error) {
		if o.PrioritySpec == "" {
			return nil, fault.Field("priority_extra_spec", "must name an extra spec, because cost = priority")
		}
		return valued{name, "", o.PrioritySpec, whole}, nil
	}},
}

// Costs lists the names of all costs.
var Costs = func() (names []string) {
	for _, c := range costs {
		names = append(names, c.name)
	}
	return names
}()

// NewCost returns the cost with a name:
//   - partial_hour: seconds since the last full Period of running, for which a provider that
//     terminates an instance does not charge (paper 001, Algorithm 4);
//   - running_time: seconds since the instance started to run;
//   - age: seconds since the request for the instance;
//   - price: the decimal number in the flavor's PriceSpec, in millionths;
//   - priority: the whole number in the flavor's PrioritySpec.
//
// An instance that does not run has a running time of 0; a time in the future, from a clock
// that is ahead, counts as now. A flavor without the extra spec, or with an invalid number in
// it, costs 0. NewCost fails with an Invalid fault if it does not know the name, or if the
// Period or the extra spec is missing.
func NewCost(name string, o CostOptions) (Cost, error) {
	for _, c := range costs {
		if c.name == name {
			return c.make(name, o)
		}
	}
	return nil, fault.Field("cost", "%s", fault.Unknown("cost", name, Costs))
}

func launched(i *inventory.Instance) span.Instant { return i.Launched }
func created(i *inventory.Instance) span.Instant  { return i.Created }

// elapsed is the cost that counts seconds since an instant or, with a period, since the last full
// period after it. The instant 0 means never, and a period of 0 means none.
type elapsed struct {
	name   string
	since  func(*inventory.Instance) span.Instant
	period int64
}

func (c elapsed) Name() string { return c.name }
func (elapsed) Unit() string   { return "s" }

// Of returns the cost at now: the seconds since the instance began, or since its last full period.
func (c elapsed) Of(i *inventory.Instance, now span.Instant) int64 {
	since := c.since(i)
	if since == 0 || since >= now {
		return 0
	}
	seconds := int64(now - since)
	if seconds < 0 {
		seconds = math.MaxInt64 // the difference overflows
	}
	if c.period > 0 {
		return seconds % c.period
	}
	return seconds
}

// key returns a number that sorts instances by their cost at any time, and since when the instance costs
// something.
func (c elapsed) key(i *inventory.Instance) (key int64, since span.Instant) {
	since = c.since(i)
	switch {
	case since == 0:
		return nothing, 0
	case c.period > 0:
		return remainder(-int64(since), c.period), since
	}
	return -int64(since), since
}

// at returns the cost at now of an instance with that key.
func (c elapsed) at(key int64, now span.Instant) int64 {
	switch {
	case key == nothing:
		return 0
	case c.period > 0:
		return remainder(int64(now)+key, c.period)
	}
	return int64(now) + key
}

// turn returns the key of the instance that is cheapest at now; nothing without periods.
func (c elapsed) turn(now span.Instant) int64 {
	if c.period > 0 {
		return remainder(-int64(now), c.period)
	}
	return nothing
}

// remainder returns n modulo by, which is never negative.
func remainder(n, by int64) int64 { return (n%by + by) % by }

// valued is the cost in an extra spec of the flavor.
type valued struct {
	name, unit, spec string
	parse            func(string) int64
}

func (c valued) Name() string { return c.name }
func (c valued) Unit() string { return c.unit }

func (c valued) Of(i *inventory.Instance, _ span.Instant) int64 {
	return c.parse(i.Flavor.ExtraSpecs[c.spec])
}

func (c valued) key(i *inventory.Instance) (int64, span.Instant) { return c.Of(i, 0), 0 }
func (valued) at(key int64, _ span.Instant) int64                { return key }
func (valued) turn(span.Instant) int64                           { return nothing }

// whole parses a whole number; it returns math.MaxInt64 for a larger one, and 0 for negative
// numbers and other text.
func whole(word string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
	if err != nil && n != math.MaxInt64 {
		return 0
	}
	return max(0, n)
}

// millionths parses a decimal number such as "0.25" in the same way, and ignores digits
// after the sixth decimal.
func millionths(word string) int64 {
	units, parts, _ := strings.Cut(strings.TrimSpace(word), ".")
	if units+parts == "" || strings.Trim(units+parts, "0123456789") != "" {
		return 0
	}
	n, _ := strconv.ParseInt("0"+units, 10, 64)
	if n >= math.MaxInt64/1_000_000 {
		return math.MaxInt64
	}
	millionths, _ := strconv.ParseInt((parts + "000000")[:6], 10, 64)
	return n*1_000_000 + millionths
}
