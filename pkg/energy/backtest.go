// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Backtest compares forecasters on past demand. At each measurement the plan requires a number of
// hosts: the larger of the forecast and the number of reserved hosts. The backtest assumes that
// this number of hosts is on Ahead seconds later.
type Backtest struct {
	Ahead  int64
	Hosts  int     // the number of hosts; a plan requires no more. 0 means no bound
	Weight float64 // the cost of a missed host-hour, in idle host-hours
}

// Trial is the result of one forecaster in a backtest.
type Trial struct {
	Forecaster string
	// MAE is the mean absolute error of the forecast, in hosts, compared with the largest number of
	// hosts in use within Ahead.
	MAE float64
	// Missed is the number of host-hours in use that were not on, Surplus the number of those that
	// were on and not in use.
	Missed, Surplus float64
	Worst           int // the largest number of hosts missed at once
	WorstAt         span.Instant
	Score           float64 // Weight·Missed + Surplus, in host-hours: less is better
	// Required is, for each measurement, the number of hosts that the plan required.
	Required []int
}

// Run replays the measurements, which are sorted by time, through each of the forecasters and
// returns their trials, the best first; trials with equal scores are sorted by name. It does not
// count the time within Ahead of the first measurement. The error is an Invalid fault.
func (b Backtest) Run(series []Demand, names ...string) ([]Trial, error) {
	switch {
	case b.Ahead < 1:
		return nil, fault.Field("ahead", "must be 1 second or more")
	case !(b.Weight >= 0):
		return nil, fault.Field("weight", "must be 0 or more")
	case len(series) == 0 || series[len(series)-1].At < series[0].At.Add(b.Ahead):
		return nil, fault.Field("series", "must be longer than %v", seconds(b.Ahead))
	}
	peaks := b.peaks(series)
	trials := make([]Trial, 0, len(names))
	for _, name := range names {
		f, err := NewForecaster(name)
		if err != nil {
			return nil, err
		}
		trials = append(trials, b.try(name, f, series, peaks))
	}
	slices.SortStableFunc(trials, func(x, y Trial) int { return cmp.Compare(x.Score, y.Score) })
	return trials, nil
}

// AlwaysOn returns the number of idle host-hours if no host is ever switched off, over the time
// that the trials count.
func (b Backtest) AlwaysOn(series []Demand) (idle float64) {
	for i, d := range series[:len(series)-1] {
		if d.At >= series[0].At.Add(b.Ahead) {
			idle += float64(max(b.Hosts-d.InUse, 0)) * float64(series[i+1].At-d.At) / 3600
		}
	}
	return idle
}

// peaks returns the largest number of hosts in use from each measurement until Ahead after it.
func (b Backtest) peaks(series []Demand) []int {
	peaks := make([]int, len(series))
	window := movingMaximum{window: b.Ahead}
	for i := len(series) - 1; i >= 0; i-- { // from the end, so that time runs backwards
		window.Observe(-series[i].At, series[i].InUse)
		peaks[i] = window.Forecast(0)
	}
	return peaks
}

// try runs a forecaster over the series, as if each demand became known at its time, and returns how
// many host-hours it would have lacked and had too many. peaks are the demands that came within Ahead.
func (b Backtest) try(name string, f Forecaster, series []Demand, peaks []int) Trial {
	t := Trial{Forecaster: name, Required: make([]int, len(series))}
	planned := -1 // the latest plan that is at least Ahead old
	for i, d := range series {
		f.Observe(d.At, d.InUse)
		forecast := f.Forecast(b.Ahead)
		t.MAE += float64(abs(forecast-peaks[i])) / float64(len(series))
		t.Required[i] = max(forecast, d.Reserved)
		if b.Hosts > 0 {
			t.Required[i] = min(t.Required[i], b.Hosts)
		}
		for series[planned+1].At <= d.At.Add(-b.Ahead) {
			planned++
		}
		if planned < 0 || i+1 == len(series) {
			continue
		}
		hours := float64(series[i+1].At-d.At) / 3600
		if gap := d.InUse - t.Required[planned]; gap > 0 {
			t.Missed += hours * float64(gap)
			if gap > t.Worst {
				t.Worst, t.WorstAt = gap, d.At
			}
		} else {
			t.Surplus -= hours * float64(gap)
		}
	}
	t.Score = b.Weight*t.Missed + t.Surplus
	return t
}

func abs(n int) int { return max(n, -n) }
