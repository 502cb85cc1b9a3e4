// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// better states whether larger or smaller values of a measure are preferred.
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
	// in returns the measure over a part of the trace's time, and false if it is undefined there. A
	// nil function means that the measure has no parts.
	in func(p part) (float64, bool)
	// switched is true if the measure applies only if a setting switches hosts off.
	switched bool
	// sameJobs is true if the measure compares only settings that ran the same jobs: a setting that
	// refuses all jobs needs no energy.
	sameJobs bool
}

// asResults means as many digits as in results.csv.
const asResults = -1

const hour = 3600.0

// measures are listed in the order of the tables.
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

// hostSeconds returns the host-seconds of all hosts between the first submission and the last end.
func (r *result) hostSeconds() float64 {
	return float64(r.hosts) * float64(r.tally.last-r.tally.first)
}

// kWh returns the energy that the hosts used. Hosts that are always on are idle or in use.
func (r *result) kWh() float64 {
	if r.power != nil {
		return r.power.KWh()
	}
	const joules = 3.6e6
	return (r.draw.Idle*(r.hostSeconds()-r.tally.inUse) + r.draw.Full*r.tally.inUse) / joules
}

// verdict states which setting was best by a measure, and how certain that is.
type verdict struct {
	best   int
	values map[int]float64 // by the index of the setting, if it is judged
	// alike are the settings that do not clearly differ from the best one: the parts of the trace
	// disagree on which of the two is better or, for a measure without parts, the values differ by
	// at most a hundredth.
	alike []int
	// short is true if the trace has too few parts to show whether they agree.
	short bool
	// fewer are the settings that are not compared because they accepted fewer jobs.
	fewer []int
}

// verdictParts is the largest number of parts, equal in time, into which a trace is divided to test
// whether they agree.
const verdictParts = 20

// judge compares the settings for which the measure is defined; ok is false if there is none.
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

// all returns the values of all settings; ok is false if one is undefined.
func (m *measure) all(results []result) (values []float64, ok bool) {
	ok = m.means(results)
	for i := range results {
		value, known := m.of(&results[i])
		values, ok = append(values, value), ok && known
	}
	return values, ok
}

// enoughJobs returns how many jobs a setting must have accepted for a comparison of totals over its
// jobs: as many as the setting that accepted the most, less a hundredth of all jobs.
func enoughJobs(results []result) int64 {
	enough := int64(1)
	for i := range results {
		t := results[i].tally
		enough = max(enough, results[i].accepted()-(t.reserved.jobs+t.others.jobs)/100)
	}
	return enough
}

func (r *result) accepted() int64 { return r.tally.reserved.accepted + r.tally.others.accepted }

// alike reports whether other does not clearly differ from the best setting. short is true if the
// trace is too short to show a difference. Values that are equal in a table are alike.
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
