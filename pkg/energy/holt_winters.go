// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"math"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// daily is the number of quarters of an hour in a day.
const daily = 24 * 4

// The smoothing factors of the level, the trend, the season and the error, and the factor that is
// applied to the trend with each step ahead.
const (
	learnLevel  = 0.3
	learnTrend  = 0.02
	learnSeason = 0.3
	learnError  = 0.02
	damping     = 0.9
	// margin is how many mean errors are added to the forecast, because a missing host costs more
	// than an idle one.
	margin = 2
)

// holtWinters is Holt-Winters: additive exponential smoothing of the largest number in use
// in each quarter of an hour, with a damped trend and the day as season. For the first two
// days, and after two days without a measurement, it predicts that as many stay in use as
// are now.
type holtWinters struct {
	last    Demand
	quarter int64 // the current quarter
	most    int   // the largest number in use in it
	begun   int64 // the first quarter since the last long gap

	level, trend, wrong float64
	season              [daily]float64
}

func newHoltWinters() *holtWinters { return &holtWinters{begun: math.MinInt64} }

// Observe implements Forecaster. The peak of a quarter of an hour is learned when the next one begins.
func (f *holtWinters) Observe(at span.Instant, inUse int) {
	now := quarterOf(at)
	f.last = Demand{At: at, InUse: max(inUse, 0)}
	switch {
	case f.begun == math.MinInt64 || now > f.quarter+2*daily || now < f.quarter:
		*f = holtWinters{last: f.last, quarter: now, begun: now, level: float64(f.last.InUse)}
	case now > f.quarter:
		f.learn(float64(f.most))
		f.quarter, f.most = now, 0
	}
	f.most = max(f.most, f.last.InUse)
}

// learn adds the value of a quarter of an hour. Quarters without a measurement are skipped.
func (f *holtWinters) learn(value float64) {
	season := &f.season[slotOf(f.quarter)]
	expected := f.level + damping*f.trend + *season
	f.wrong += learnError * (math.Abs(value-expected) - f.wrong)
	before := f.level
	f.level = learnLevel*(value-*season) + (1-learnLevel)*(f.level+damping*f.trend)
	f.trend = learnTrend*(f.level-before) + (1-learnTrend)*damping*f.trend
	*season += learnSeason * (value - f.level - *season)
}

func slotOf(quarter int64) int64 { return ((quarter % daily) + daily) % daily }

// Forecast implements Forecaster: the largest expected peak of the quarters until then plus a margin of
// past errors; the last demand until two days are known.
func (f *holtWinters) Forecast(ahead int64) int {
	if f.quarter < f.begun+2*daily {
		return f.last.InUse
	}
	until := min(quarterOf(f.last.At.Add(max(ahead, 0))), f.quarter+quarters)
	most, trend, dying := 0.0, 0.0, f.trend
	for q := f.quarter; q <= until; q++ {
		dying *= damping
		trend += dying
		most = max(most, f.level+trend+f.season[slotOf(q)])
	}
	return max(f.last.InUse, int(min(math.Ceil(most+margin*f.wrong), math.MaxInt32)))
}
