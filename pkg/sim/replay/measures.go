package replay

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// better says which values of a measure are to be preferred.
type better int

const (
	more better = iota
	less
)

// measure is something that settings are compared by.
type measure struct {
	key, name, unit string
	digits          int
	better          better
	of              func(r *result) (float64, bool)
	// in is the measure of a part of the jobs; nil where it has none.
	in func(p part) (float64, bool)
	// switched says that it means something only where a setting switches hosts off.
	switched bool
}

const hour = 3600.0

// measures are in the order of the tables.
var measures = []measure{
	{
		"acceptance_reserved", "acceptance of reservations", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.reserved.share() },
		func(p part) (float64, bool) { return p.reserved.share() }, false,
	},
	{
		"acceptance_others", "acceptance of other jobs", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.others.share() },
		func(p part) (float64, bool) { return p.others.share() }, false,
	},
	{
		"mean_wait", "mean wait of other jobs", "h", 3, less,
		func(r *result) (float64, bool) { mean, ok := r.tally.waits.mean(); return mean / hour, ok },
		func(p part) (float64, bool) { return perJob(p.waits/hour, p) }, false,
	},
	{
		"p95_wait", "95 % of them wait at most", "h", 3, less,
		func(r *result) (float64, bool) { at, ok := r.tally.waits.at(0.95); return at / hour, ok }, nil, false,
	},
	{
		"slowdown", "mean slowdown", "", 2, less,
		func(r *result) (float64, bool) { return perWait(r.tally.slowdowns, r) },
		func(p part) (float64, bool) { return perJob(p.slowdowns, p) }, false,
	},
	{
		"bounded_slowdown", "mean bounded slowdown", "", 2, less,
		func(r *result) (float64, bool) { return perWait(r.tally.bounded, r) },
		func(p part) (float64, bool) { return perJob(p.bounded, p) }, false,
	},
	{
		"utilisation", "utilisation", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.inUse / r.hostSeconds(), r.hostSeconds() > 0 }, nil, false,
	},
	{
		"makespan", "makespan", "d", 2, less,
		func(r *result) (float64, bool) { return float64(r.tally.last-r.tally.first) / (24 * hour), true }, nil, false,
	},
	{
		"host_hours_off", "host-hours off", "h", 0, more,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return float64(r.power.Hosts.Off()) / hour, true
		}, nil, true,
	},
	{
		"energy", "energy", "kWh", 1, less,
		func(r *result) (float64, bool) { return r.kWh(), r.draw.Full > 0 }, nil, false,
	},
	{
		"energy_per_work", "energy per host-hour of work", "kWh", 4, less,
		func(r *result) (float64, bool) {
			return r.kWh() / (r.tally.inUse / hour), r.draw.Full > 0 && r.tally.inUse > 0
		}, nil, false,
	},
	{
		"late_starts", "late starts", "", 0, less,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return float64(r.power.Late), true
		}, nil, true,
	},
	{
		"delay_req", "delay_req of paper 004", "", 1, less,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return r.power.Delay, true
		}, nil, true,
	},
}

func perJob(sum float64, p part) (float64, bool) {
	return sum / float64(p.others.accepted), p.others.accepted > 0
}

func perWait(sum float64, r *result) (float64, bool) {
	return sum / float64(r.tally.waits.n), r.tally.waits.n > 0
}

// hostSeconds is what there was of all hosts from the first submission to the last end.
func (r *result) hostSeconds() float64 {
	return float64(r.hosts) * float64(r.tally.last-r.tally.first)
}

// kWh is the energy that the hosts took. Where they are always on, they are idle or in use.
func (r *result) kWh() float64 {
	if r.power != nil {
		return r.power.KWh()
	}
	const joules = 3.6e6
	return (r.draw.Idle*(r.hostSeconds()-r.tally.inUse) + r.draw.Full*r.tally.inUse) / joules
}

// verdict is which setting was best on a measure, and how sure that is.
type verdict struct {
	best   int
	values []float64
	// alike are those that do not clearly differ from the best: the parts of the trace do not
	// agree on which of the two is better, or, of a measure that has no parts, they are within
	// a hundredth of each other.
	alike []int
}

// verdictParts is into how many parts of its time a trace is divided to see whether these
// agree.
const verdictParts = 20

// judge compares the settings by a measure; it is not ok where one has no value for it.
func (m *measure) judge(results []result) (v verdict, ok bool) {
	if m.switched && !slices.ContainsFunc(results, func(r result) bool { return r.power != nil }) {
		return v, false
	}
	for i := range results {
		value, ok := m.of(&results[i])
		if !ok {
			return v, false
		}
		v.values = append(v.values, value)
		if m.better == more && value > v.values[v.best] || m.better == less && value < v.values[v.best] {
			v.best = i
		}
	}
	for i := range results {
		if i != v.best && m.alike(&results[v.best], &results[i], v.values[v.best], v.values[i]) {
			v.alike = append(v.alike, i)
		}
	}
	return v, true
}

func (m *measure) alike(best, other *result, value, otherValue float64) bool {
	if value == otherValue {
		return true
	}
	if m.in == nil {
		return math.Abs(value-otherValue) <= 0.01*max(math.Abs(value), math.Abs(otherValue))
	}
	a, _ := best.tally.parts.merged(verdictParts)
	b, _ := other.tally.parts.merged(verdictParts)
	var differences []float64
	for i := range min(len(a), len(b)) {
		x, hasX := m.in(a[i])
		y, hasY := m.in(b[i])
		if hasX && hasY {
			differences = append(differences, x-y)
		}
	}
	d := sim.Mean(differences)
	return d.Runs < 2 || math.Abs(d.Mean) <= d.Half
}

// allAlike says that no setting clearly differs from the best.
func (v *verdict) allAlike() bool { return len(v.alike) == len(v.values)-1 }
