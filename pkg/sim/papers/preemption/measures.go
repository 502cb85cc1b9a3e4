// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// measure is a quantity that the report shows for each setting.
type measure struct {
	name, unit string
	digits     int
	// of returns the value in one run; false if it is undefined for the run.
	of func(o Options, t *tally) (float64, bool)
}

// seconds returns the length of the measured period.
func (t *tally) seconds() float64 { return float64(t.until - t.warm) }

// days returns the length of the measured period, in days.
func (t *tally) days() float64 { return t.seconds() / day }

func always(of func(o Options, t *tally) float64) func(Options, *tally) (float64, bool) {
	return func(o Options, t *tally) (float64, bool) { return of(o, t), true }
}

// spots returns a measure that is undefined for runs without requests for preemptible instances.
func spots(of func(o Options, t *tally) float64) func(Options, *tally) (float64, bool) {
	return func(o Options, t *tally) (float64, bool) {
		if t.asked[spot] == 0 {
			return 0, false
		}
		return of(o, t), true
	}
}

// ratio returns part divided by of, or 0 if of is 0.
func ratio(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return part / of
}

// The measures that are compared by name.
const (
	utilization  = "utilization_vcpus"
	useful       = "useful_utilization_vcpus"
	refusedShare = "refused_normal"
	evictions    = "evictions"
	lostWork     = "lost_work"
	unpaidWork   = "unpaid_work"
)

// measures returns all measures.
func measures() []measure {
	vcpus := func(o Options, t *tally) float64 { return o.vcpus() * t.seconds() }
	list := []measure{
		{utilization, "share", 3, always(func(o Options, t *tally) float64 { return (t.sum[normal].vcpus + t.sum[spot].vcpus) / vcpus(o, t) })},
		{"utilization_vcpus_normal", "share", 3, always(func(o Options, t *tally) float64 { return t.sum[normal].vcpus / vcpus(o, t) })},
		{useful, "share", 3, always(func(o Options, t *tally) float64 {
			return (t.sum[normal].vcpus + t.sum[spot].vcpus - t.lost.vcpus) / vcpus(o, t)
		})},
		{"utilization_memory", "share", 3, always(func(o Options, t *tally) float64 {
			return (t.sum[normal].memory + t.sum[spot].memory) / (float64(o.Hosts) * float64(o.Host.MemoryMB) * t.seconds())
		})},
		{refusedShare, "share of requests", 4, always(func(_ Options, t *tally) float64 {
			return ratio(float64(t.refusal[normal]), float64(t.asked[normal]))
		})},
		{"refused_preemptible", "share of requests", 4, spots(func(_ Options, t *tally) float64 {
			return float64(t.refusal[spot]) / float64(t.asked[spot])
		})},
		{evictions, "per day", 1, spots(func(_ Options, t *tally) float64 { return float64(t.victims) / t.days() })},
		{"requests_that_evict", "per day", 1, spots(func(_ Options, t *tally) float64 { return float64(t.makers) / t.days() })},
		{"evicted", "share of preemptible", 3, spots(func(_ Options, t *tally) float64 {
			evicted, all := lives(t)
			return ratio(evicted, all)
		})},
		{lostWork, "VCPU-hours per day", 1, spots(func(_ Options, t *tally) float64 { return t.lost.vcpus / hour / t.days() })},
		{"lost_memory", "GB-hours per day", 0, spots(func(_ Options, t *tally) float64 { return t.lost.memory / 1000 / hour / t.days() })},
		{"lost_share", "share of preemptible VCPU-hours", 3, spots(func(_ Options, t *tally) float64 {
			return ratio(t.lost.vcpus, t.sum[spot].vcpus)
		})},
		{unpaidWork, "VCPU-hours per day", 2, spots(func(_ Options, t *tally) float64 { return t.lostUnpaid / hour / t.days() })},
		{"survival_1h", "share of preemptible", 3, spots(func(_ Options, t *tally) float64 { return survives(t, 1) })},
		{"survival_24h", "share of preemptible", 3, spots(func(_ Options, t *tally) float64 { return survives(t, 24) })},
	}
	for n, name := range preemption.Costs {
		unit, per := costUnit(name)
		list = append(list, measure{costMeasure(name), unit, 1, spots(func(_ Options, t *tally) float64 { return t.charged[n] / per / t.days() })})
	}
	return list
}

// costMeasure returns the name of the measure that sums up a cost of all victims.
func costMeasure(cost string) string { return "cost_" + cost }

// costUnit returns the unit in which the report shows a cost, and how much of the cost one unit is.
func costUnit(cost string) (unit string, of float64) {
	switch cost {
	case "price":
		return "units of price per day", 1e6
	case "priority":
		return "units of priority per day", 1
	}
	return "instance-hours per day", hour
}

// lives returns how many preemptible instances were evicted, and how many there were in all.
func lives(t *tally) (evicted, all float64) {
	for h := range t.evicted {
		evicted += float64(t.evicted[h])
		all += float64(t.evicted[h] + t.finished[h])
	}
	return evicted, all
}

// survives returns the share of preemptible instances that were not evicted within that many hours.
func survives(t *tally, hours int) float64 {
	left := survival(t.finished, t.evicted)
	return left[min(hours, len(left)-1)]
}
