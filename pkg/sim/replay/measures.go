package replay

import (
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// better is which values of a measure are preferred.
type better int

const (
	more better = iota
	less
)

// measure is a quantity that settings are compared by.
type measure struct {
	key, name, unit string
	digits          int
	better          better
	of              func(r *result) (float64, bool)
	// in returns the measure of a part of the jobs; nil if parts do not define it.
	in func(p part) (float64, bool)
	// switched reports whether the measure applies only if a setting switches hosts off.
	switched bool
	// sameJobs reports whether the measure compares only settings that ran the same jobs: a setting
	// that refuses all jobs needs no energy.
	sameJobs bool
}

// asResults stands for as many digits as results.csv has.
const asResults = -1

const hour = 3600.0

// measures are in the order of the tables.
var measures = []measure{
	{
		"acceptance_reserved", "acceptance of reservations", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.reserved.share() },
		func(p part) (float64, bool) { return p.reserved.share() }, false, false,
	},
	{
		"acceptance_others", "acceptance of other jobs", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.others.share() },
		func(p part) (float64, bool) { return p.others.share() }, false, false,
	},
	{
		"mean_wait", "mean wait of other jobs", "h", 3, less,
		func(r *result) (float64, bool) { mean, ok := r.tally.waits.mean(); return mean / hour, ok },
		func(p part) (float64, bool) { return perJob(p.waits/hour, p) }, false, false,
	},
	{
		"p95_wait", "95 % of them wait at most", "h", 3, less,
		func(r *result) (float64, bool) { at, ok := r.tally.waits.at(0.95); return at / hour, ok }, nil, false, false,
	},
	{
		"slowdown", "mean slowdown", "", 2, less,
		func(r *result) (float64, bool) { return perWait(r.tally.slowdowns, r) },
		func(p part) (float64, bool) { return perJob(p.slowdowns, p) }, false, false,
	},
	{
		"bounded_slowdown", "mean bounded slowdown", "", 2, less,
		func(r *result) (float64, bool) { return perWait(r.tally.bounded, r) },
		func(p part) (float64, bool) { return perJob(p.bounded, p) }, false, false,
	},
	{
		"utilization", "utilization", "share", 4, more,
		func(r *result) (float64, bool) { return r.tally.inUse / r.hostSeconds(), r.hostSeconds() > 0 }, nil, false, false,
	},
	{
		"makespan", "makespan", "d", 2, less,
		func(r *result) (float64, bool) { return float64(r.tally.last-r.tally.first) / (24 * hour), true }, nil, false, true,
	},
	{
		"host_hours_off", "host-hours off", "h", 0, more,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return float64(r.power.Hosts.Off()) / hour, true
		}, nil, true, true,
	},
	{
		"energy", "energy", "kWh", 1, less,
		func(r *result) (float64, bool) { return r.kWh(), r.draw.Full > 0 }, nil, false, true,
	},
	{
		"energy_per_work", "energy per host-hour of work", "kWh", 4, less,
		func(r *result) (float64, bool) {
			return r.kWh() / (r.tally.inUse / hour), r.draw.Full > 0 && r.tally.inUse > 0
		}, nil, false, true,
	},
	{
		"late_starts", "late starts", "", 0, less,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return float64(r.power.Late), true
		}, nil, true, true,
	},
	{
		"delay_req", "delay_req of paper 004", "", asResults, less,
		func(r *result) (float64, bool) {
			if r.power == nil {
				return 0, true
			}
			return r.power.Delay, true
		}, nil, true, true,
	},
}

func perJob(sum float64, p part) (float64, bool) {
	return sum / float64(p.others.accepted), p.others.accepted > 0
}

func perWait(sum float64, r *result) (float64, bool) {
	return sum / float64(r.tally.waits.n), r.tally.waits.n > 0
}

// hostSeconds returns the host-seconds of all hosts from the first submission to the last end.
func (r *result) hostSeconds() float64 {
	return float64(r.hosts) * float64(r.tally.last-r.tally.first)
}

// kWh returns the energy that the hosts took. Hosts that are always on are idle or in use.
func (r *result) kWh() float64 {
	if r.power != nil {
		return r.power.KWh()
	}
	const joules = 3.6e6
	return (r.draw.Idle*(r.hostSeconds()-r.tally.inUse) + r.draw.Full*r.tally.inUse) / joules
}

// verdict is which setting was best on a measure, and how certain that is.
type verdict struct {
	best   int
	values map[int]float64 // by the index of the setting, if it is judged
	// alike are the settings that do not clearly differ from the best: the parts of the trace do
	// not agree that it is better, or, for a measure without parts, the values are within a
	// hundredth of each other.
	alike []int
	// short reports whether the trace has too few parts to show whether they agree.
	short bool
	// fewer are the settings that are not judged, since they accepted fewer jobs.
	fewer []int
}

// verdictParts is how many equal parts of its time a trace is divided into at most, to test whether
// they agree.
const verdictParts = 20

// judge compares the settings that have a value for a measure; ok is false if none has.
func (m *measure) judge(results []result) (v verdict, ok bool) {
	if !m.means(results) {
		return v, false
	}
	v.best, v.values = -1, map[int]float64{}
	enough := enoughJobs(results)
	for i := range results {
		value, known := m.of(&results[i])
		if !known || m.sameJobs && results[i].accepted() < enough {
			v.fewer = append(v.fewer, i)
			continue
		}
		v.values[i] = value
		if v.best < 0 || m.better == more && value > v.values[v.best] || m.better == less && value < v.values[v.best] {
			v.best = i
		}
	}
	for i := range results {
		value, judged := v.values[i]
		if i == v.best || !judged {
			continue
		}
		alike, short := m.alike(&results[v.best], &results[i], v.values[v.best], value)
		if alike {
			v.alike = append(v.alike, i)
		}
		v.short = v.short || short
	}
	return v, v.best >= 0
}

// means reports whether the measure applies to the settings.
func (m *measure) means(results []result) bool {
	return !m.switched || slices.ContainsFunc(results, func(r result) bool { return r.power != nil })
}

// all returns the values of all settings; ok is false if one has none.
func (m *measure) all(results []result) (values []float64, ok bool) {
	ok = m.means(results)
	for i := range results {
		value, known := m.of(&results[i])
		values, ok = append(values, value), ok && known
	}
	return values, ok
}

// enoughJobs returns how many jobs a setting must have accepted to compare totals over its jobs: as
// many as the setting that accepted the most, less a hundredth of all.
func enoughJobs(results []result) int64 {
	enough := int64(1)
	for i := range results {
		t := results[i].tally
		enough = max(enough, results[i].accepted()-(t.reserved.jobs+t.others.jobs)/100)
	}
	return enough
}

func (r *result) accepted() int64 { return r.tally.reserved.accepted + r.tally.others.accepted }

// alike reports whether another setting does not clearly differ from the best, and whether that is
// because the trace is too short. Values that look the same in a table are alike.
func (m *measure) alike(best, other *result, value, otherValue float64) (alike, short bool) {
	if m.number(value) == m.number(otherValue) {
		return true, false
	}
	if m.in == nil {
		return math.Abs(value-otherValue) <= 0.01*max(math.Abs(value), math.Abs(otherValue)), false
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
	if m.better == less {
		d.Mean = -d.Mean
	}
	return d.Runs < 2 || d.Mean <= d.Half, d.Runs < 2
}

// allAlike reports whether no setting clearly differs from the best.
func (v *verdict) allAlike() bool { return len(v.alike) == len(v.values)-1 }

// number formats a value as in the tables.
func (m *measure) number(value float64) string {
	if m.digits == asResults {
		return fmt.Sprintf("%.6g", value)
	}
	return fmt.Sprintf("%.*f", m.digits, value)
}

// format formats a value with its unit.
func (m *measure) format(value float64) string {
	if m.unit != "" && m.unit != "share" {
		return m.number(value) + " " + m.unit
	}
	return m.number(value)
}
