// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// every returns a demand that is measured each half hour from noon on.
func every(inUse ...int) (series []energy.Demand) {
	for i, n := range inUse {
		series = append(series, energy.Demand{At: noon.Add(int64(i) * hour / 2), InUse: n})
	}
	return series
}

func TestABacktestCountsWhatIsMissedAndWhatIsIdle(t *testing.T) {
	b := energy.Backtest{Ahead: hour / 2, Weight: 10}
	got, err := b.Run(every(2, 6, 6, 1, 1, 1), "moving_maximum", "last_value")
	if err != nil {
		t.Fatal(err)
	}
	want := []energy.Trial{
		// From 12:30 on, 2 6 6 1 hosts are on and 6 6 1 1 are in use.
		{Forecaster: "last_value", MAE: (4 + 0 + 0 + 0 + 0 + 0) / 6.0, Missed: 2, Surplus: 2.5, Worst: 4, WorstAt: noon + hour/2, Score: 22.5, Required: []int{2, 6, 6, 1, 1, 1}},
		// 2 6 6 6, and 6 once more because the window is an hour.
		{Forecaster: "moving_maximum", MAE: (4 + 0 + 0 + 5 + 5 + 0) / 6.0, Missed: 2, Surplus: 5, Worst: 4, WorstAt: noon + hour/2, Score: 25, Required: []int{2, 6, 6, 6, 6, 1}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

func TestABacktestKnowsReservationsAndTheSizeOfTheFleet(t *testing.T) {
	series := every(1, 9, 1, 1)
	series[0].Reserved = 9
	got, err := energy.Backtest{Ahead: hour / 2, Weight: 1, Hosts: 7}.Run(series, "last_value")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{7, 7, 1, 1}, got[0].Required); diff != "" || got[0].Missed != 1 {
		t.Errorf("%v missed; want -, got +\n%s", got[0].Missed, diff)
	}
}

func TestABacktestOfNothingIsRefused(t *testing.T) {
	for field, b := range map[string]energy.Backtest{"ahead": {}, "weight": {Ahead: 1, Weight: math.NaN()}, "series": {Ahead: 3600}} {
		if _, err := b.Run(every(1, 2), "last_value"); fault.Of(err) == nil || fault.Of(err).Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if _, err := (energy.Backtest{Ahead: 1}).Run(every(1, 2), "best"); fault.Of(err) == nil || fault.Of(err).Field != "forecaster" {
		t.Errorf("got %v", err)
	}
}

func TestMissedAndSurplusAreWhatTheHostsOnAndThoseInUseDifferBy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		series := []energy.Demand{}
		at := span.Instant(0)
		for range rapid.IntRange(3, 60).Draw(t, "measurements") {
			at = at.Add(rapid.Int64Range(1, 1200).Draw(t, "step"))
			series = append(series, energy.Demand{At: at, InUse: rapid.IntRange(0, 20).Draw(t, "in use")})
		}
		b := energy.Backtest{Ahead: rapid.Int64Range(1, int64(at-series[0].At)).Draw(t, "ahead"), Weight: 3}
		trials, err := b.Run(series, energy.Forecasters...)
		if err != nil {
			t.Fatal(err)
		}
		for i, trial := range trials {
			missed, surplus := 0.0, 0.0
			for n := range series[:len(series)-1] {
				on := -1 // the last plan that is old enough, searched from the end
				for m := n; m >= 0 && on < 0; m-- {
					if series[m].At <= series[n].At.Add(-b.Ahead) {
						on = trial.Required[m]
					}
				}
				if on >= 0 {
					hours := float64(series[n+1].At-series[n].At) / hour
					missed += hours * float64(max(series[n].InUse-on, 0))
					surplus += hours * float64(max(on-series[n].InUse, 0))
				}
			}
			if math.Abs(missed-trial.Missed) > 1e-6 || math.Abs(surplus-trial.Surplus) > 1e-6 || math.Abs(3*missed+surplus-trial.Score) > 1e-6 {
				t.Fatalf("%+v: %v missed, %v idle", trial, missed, surplus)
			}
			if i > 0 && trials[i-1].Score > trial.Score {
				t.Fatalf("%s is before %s", trials[i-1].Forecaster, trial.Forecaster)
			}
		}
	})
}
