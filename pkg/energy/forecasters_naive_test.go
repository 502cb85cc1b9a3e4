// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// series is all that was measured, for forecasts that read it from its beginning each time.
type series []energy.Demand

func (s series) last() energy.Demand { return s[len(s)-1] }

// most returns the largest number in use in [from, until); known is false if nothing was measured then.
func (s series) most(from, until span.Instant) (inUse int, known bool) {
	for _, d := range s {
		if d.At >= from && d.At < until {
			inUse, known = max(inUse, d.InUse), true
		}
	}
	return inUse, known
}

func quarterStart(at span.Instant) span.Instant { return at - at%(15*minute) }

func (s series) lastValue(int64) int { return s.last().InUse }

func (s series) movingMaximum(window int64) func(int64) int {
	return func(int64) int {
		inUse, _ := s.most(s.last().At.Add(-window), s.last().At+1)
		return inUse
	}
}

func (s series) timeOfWeek(weeks int) func(int64) int {
	return func(ahead int64) int {
		inUse, first := s.last().InUse, quarterStart(s.last().At)
		for q := first; q <= s.last().At.Add(max(ahead, 0)) && q <= first+7*day; q += 15 * minute {
			for week := 1; week <= weeks; week++ {
				from := q - span.Instant(week*7*day)
				then, _ := s.most(from, from+15*minute)
				inUse = max(inUse, then)
			}
		}
		return inUse
	}
}

// holtWinters smooths the largest numbers of the quarters of an hour since the last gap of more than two
// days.
func (s series) holtWinters(ahead int64) int {
	type measured struct {
		start span.Instant
		most  float64
	}
	var list []measured
	for _, d := range s {
		q := quarterStart(d.At)
		if n := len(list); n > 0 && list[n-1].start == q {
			list[n-1].most = max(list[n-1].most, float64(d.InUse))
			continue
		}
		if n := len(list); n > 0 && q-list[n-1].start > 2*day {
			list = nil
		}
		list = append(list, measured{q, float64(d.InUse)})
	}
	now := list[len(list)-1].start
	if now-list[0].start < 2*day {
		return s.last().InUse
	}
	var first float64 // what was measured first after the gap
	for _, d := range slices.Backward(s) {
		if d.At < list[0].start {
			break
		}
		first = float64(d.InUse)
	}
	level, trend, wrong, season := first, 0.0, 0.0, map[span.Instant]float64{}
	for _, m := range list[:len(list)-1] {
		of := m.start % day
		expected := level + 0.9*trend + season[of]
		wrong = 0.98*wrong + 0.02*math.Abs(m.most-expected)
		next := 0.3*(m.most-season[of]) + 0.7*(level+0.9*trend)
		trend = 0.02*(next-level) + 0.98*0.9*trend
		level = next
		season[of] = 0.7*season[of] + 0.3*(m.most-level)
	}
	best, steps := 0.0, 0.0
	for q, n := now, 1.0; q <= s.last().At.Add(max(ahead, 0)) && q <= now+7*day; q, n = q+15*minute, n+1 {
		steps += math.Pow(0.9, n)
		best = max(best, level+steps*trend+season[q%day])
	}
	return max(s.last().InUse, int(math.Ceil(best+2*wrong-1e-6))) // less an error of rounding
}

func TestEveryForecastIsThatOfAllMeasurementsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window, weeks := rapid.SampledFrom([]int64{1, 10 * minute, day}).Draw(t, "window"), rapid.IntRange(1, 3).Draw(t, "weeks")
		var seen series
		at, usual := monday+span.Instant(rapid.Int64Range(0, 7*day).Draw(t, "first")), rapid.Int64Range(5*minute, 4*hour).Draw(t, "step")
		forecasters := map[string]energy.Forecaster{}
		for _, name := range energy.Forecasters {
			forecasters[name] = newForecaster(t, name, energy.Window(window), energy.Weeks(weeks))
		}
		for n := range rapid.IntRange(1, 120).Draw(t, "measurements") {
			if n > 0 {
				at = at.Add(rapid.SampledFrom([]int64{0, 1, usual, usual, usual, usual, usual, usual, usual, 2*day - usual, 2*day + 15*minute, 7 * day}).Draw(t, "passes"))
			}
			inUse := rapid.IntRange(0, 50).Draw(t, "in use")
			seen = append(seen, energy.Demand{At: at, InUse: inUse})
			for _, f := range forecasters {
				f.Observe(at, inUse)
			}
			if n%10 != 0 {
				continue
			}
			ahead := rapid.SampledFrom([]int64{-1, 0, 15 * minute, 3 * hour, 8 * day}).Draw(t, "ahead")
			for name, naive := range map[string]func(int64) int{
				"last_value": seen.lastValue, "moving_maximum": seen.movingMaximum(window), "time_of_week": seen.timeOfWeek(weeks), "holt_winters": seen.holtWinters,
			} {
				got, want := forecasters[name].Forecast(ahead), naive(ahead)
				if got != want && (name != "holt_winters" || got != want+1) { // whose error of rounding may be the other way
					t.Fatalf("%s forecasts %d for %d seconds, want %d", name, got, ahead, want)
				}
			}
		}
	})
}
