// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Use is a span with a number of hosts in use.
type Use struct {
	Span  span.Span
	Hosts int
}

// DemandOf returns a measurement for each instant at which the number of hosts in use changes.
func DemandOf(uses []Use) (series []Demand) {
	type change struct {
		at span.Instant
		by int
	}
	changes := make([]change, 0, 2*len(uses))
	for _, u := range uses {
		changes = append(changes, change{u.Span.Start, u.Hosts}, change{u.Span.End, -u.Hosts})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	inUse := 0
	for i, c := range changes {
		if inUse += c.by; i+1 == len(changes) || changes[i+1].at != c.at {
			series = append(series, Demand{At: c.at, InUse: inUse})
		}
	}
	return series
}

// mostSamples is the largest number of samples; it limits the run time of a backtest.
const mostSamples = 5_000_000

// Sample returns, for every step seconds, the latest measurement. The error is an Invalid fault if
// there would be too many samples.
func Sample(series []Demand, step int64) ([]Demand, error) {
	if len(series) == 0 {
		return nil, nil
	}
	first, last := series[0].At, series[len(series)-1].At
	if int64(last-first)/step >= mostSamples {
		return nil, fault.Field("step", "there would be more than %d samples from %v to %v: choose a longer step", mostSamples, first, last)
	}
	samples := make([]Demand, 0, int64(last-first)/step+1)
	latest := 0
	for at := first; at <= last; at = at.Add(step) {
		for latest+1 < len(series) && series[latest+1].At <= at {
			latest++
		}
		sample := series[latest]
		sample.At = at
		samples = append(samples, sample)
	}
	return samples, nil
}

// MostInUse returns the largest number of hosts in use in the series.
func MostInUse(series []Demand) (most int) {
	for _, d := range series {
		most = max(most, d.InUse)
	}
	return most
}

// Busiest returns the part of the series, at most length seconds long, with the largest sum
// of hosts in use: the index of its first measurement and the index after its last.
func Busiest(series []Demand, length int64) (first, last int) {
	from, sum, most := 0, 0, -1
	for i, d := range series {
		sum += d.InUse
		for series[from].At < d.At.Add(-length) {
			sum -= series[from].InUse
			from++
		}
		if sum > most {
			first, last, most = from, i+1, sum
		}
	}
	return first, last
}
