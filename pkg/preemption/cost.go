package preemption

import (
	"math"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CostOptions are what the costs depend on.
type CostOptions struct {
	Period int64 // of partial_hour, in seconds, greater than 0
	// PriceSpec and PrioritySpec are extra specs of flavors.
	PriceSpec, PrioritySpec string
}

// names are those of all costs.
var names = []string{"partial_hour", "running_time", "age", "price", "priority"}

// NewCost gives the cost with that name:
//   - partial_hour: seconds since the last full Period of running, as a provider that
//     terminates an instance does not charge these (paper 001, Algorithm 4);
//   - running_time: seconds since it began to run, age: since it was asked for;
//   - price: the decimal number in the flavor's PriceSpec, in millionths;
//   - priority: the whole number in the flavor's PrioritySpec.
//
// What does not run has run for no time; a time that is ahead, by a clock that is, counts
// as now. A flavor without the extra spec, or with one that is not such a number, gives 0.
// NewCost fails with an Invalid fault at a name that is none of these, and at a Period or an
// extra spec that is missing.
func NewCost(name string, o CostOptions) (Cost, error) {
	switch name {
	case "partial_hour":
		if o.Period <= 0 {
			return nil, fault.Field("cost_period", "must be at least a second")
		}
		return elapsed{name, launched, o.Period}, nil
	case "running_time":
		return elapsed{name, launched, 0}, nil
	case "age":
		return elapsed{name, created, 0}, nil
	case "price":
		if o.PriceSpec == "" {
			return nil, fault.Field("price_extra_spec", "must name an extra spec, since cost = price")
		}
		return valued{name, "millionths", o.PriceSpec, millionths}, nil
	case "priority":
		if o.PrioritySpec == "" {
			return nil, fault.Field("priority_extra_spec", "must name an extra spec, since cost = priority")
		}
		return valued{name, "", o.PrioritySpec, whole}, nil
	}
	return nil, fault.Field("cost", "%s", fault.Unknown("cost", name, names))
}

func launched(i *inventory.Instance) span.Instant { return i.Launched }
func created(i *inventory.Instance) span.Instant  { return i.Created }

// elapsed costs the seconds since an instant, 0 being never, or since the last full
// period after it; a period of 0 is none.
type elapsed struct {
	name   string
	since  func(*inventory.Instance) span.Instant
	period int64
}

func (c elapsed) Name() string { return c.name }
func (elapsed) Unit() string   { return "s" }

func (c elapsed) Of(i *inventory.Instance, now span.Instant) int64 {
	since := c.since(i)
	if since == 0 || since >= now {
		return 0
	}
	seconds := int64(now - since)
	if seconds < 0 {
		seconds = math.MaxInt64 // from so long before 1970 that it cannot be counted
	}
	if c.period > 0 {
		return seconds % c.period
	}
	return seconds
}

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

func (c elapsed) at(key int64, now span.Instant) int64 {
	switch {
	case key == nothing:
		return 0
	case c.period > 0:
		return remainder(int64(now)+key, c.period)
	}
	return int64(now) + key
}

func (c elapsed) turn(now span.Instant) int64 {
	if c.period > 0 {
		return remainder(-int64(now), c.period)
	}
	return nothing
}

// remainder is that of a division, 0 or more whatever the sign of n.
func remainder(n, by int64) int64 { return (n%by + by) % by }

// valued costs what an extra spec of the flavor says.
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

// whole reads a whole number, the greatest there is for one that is greater. Anything else,
// and what is below 0, is 0.
func whole(word string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
	if err != nil && n != math.MaxInt64 {
		return 0
	}
	return max(0, n)
}

// millionths reads a decimal number, as "0.25", in the same way. What is less than a
// millionth does not count.
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
