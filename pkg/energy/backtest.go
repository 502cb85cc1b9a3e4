package energy

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Backtest says how forecasters are judged by what has been in use. A host that a plan
// asks for is taken to be on Ahead seconds later, and one that it does not ask for to be
// off then: so on at an instant is what was required Ahead before, the larger of forecast
// and reserved.
type Backtest struct {
	Ahead  int64
	Hosts  int     // there are; a plan does not ask for more. 0 is no bound
	Weight float64 // how many idle host-hours a missed one costs
}

// Trial is how one forecaster did.
type Trial struct {
	Forecaster string
	// MAE is the mean error of the forecast, in hosts, against the most that were in use
	// within Ahead.
	MAE float64
	// Missed are the host-hours that were in use and not on, Surplus those on and not in
	// use.
	Missed, Surplus float64
	Worst           int // hosts that were missed at once
	WorstAt         span.Instant
	Score           float64 // Weight·Missed + Surplus, in host-hours: less is better
	// Required is what the plan at each measurement asked for.
	Required []int
}

// Run replays the measurements, in the order of time, through each of the forecasters and
// gives how they did, the best first, equals as they were named. Nothing is counted within Ahead of the first. The
// error is an Invalid fault.
func (b Backtest) Run(series []Demand, names ...string) ([]Trial, error) {
	switch {
	case b.Ahead < 1:
		return nil, fault.Field("ahead", "must be 1 second or more")
	case !(b.Weight >= 0):
		return nil, fault.Field("weight", "must be 0 or more")
	case len(series) == 0 || series[len(series)-1].At < series[0].At.Add(b.Ahead):
		return nil, fault.Field("series", "must be longer than %v: there is nothing to judge", seconds(b.Ahead))
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

// peaks gives the most that were in use from each measurement until Ahead after it.
func (b *Backtest) peaks(series []Demand) []int {
	peaks := make([]int, len(series))
	window := movingMaximum{window: b.Ahead}
	for i := len(series) - 1; i >= 0; i-- { // from the end, so that time runs backwards
		window.Observe(-series[i].At, series[i].InUse)
		peaks[i] = window.Forecast(0)
	}
	return peaks
}

func (b *Backtest) try(name string, f Forecaster, series []Demand, peaks []int) Trial {
	t := Trial{Forecaster: name, Required: make([]int, len(series))}
	planned := -1 // the last plan that was made Ahead before, or longer
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
