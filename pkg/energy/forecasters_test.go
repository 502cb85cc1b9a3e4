// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

func newForecaster(t interface{ Fatal(...any) }, name string, options ...energy.ForecasterOption) energy.Forecaster {
	f, err := energy.NewForecaster(name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAForecasterThatIsNotKnownIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		forecaster string
		option     energy.ForecasterOption
		field      string
	}{
		"name":   {"moving_maximun", energy.Weeks(1), "forecaster"},
		"window": {"moving_maximum", energy.Window(0), "window"},
		"weeks":  {"time_of_week", energy.Weeks(53), "weeks"},
	} {
		_, err := energy.NewForecaster(tc.forecaster, tc.option)
		if got := fault.Of(err); got == nil || got.Kind != fault.Invalid || got.Field != tc.field {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err := energy.NewForecaster("prophet")
	for _, known := range energy.Forecasters {
		if !strings.Contains(err.Error(), known) {
			t.Errorf("%q does not name %s", err, known)
		}
	}
	if !slices.Contains(energy.Forecasters, energy.DefaultForecaster) {
		t.Errorf("the default, %s, is not known", energy.DefaultForecaster)
	}
}

func TestAForecastLiesBetweenWhatIsInUseAndAllReason(t *testing.T) {
	for _, name := range energy.Forecasters {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				f, again := newForecaster(t, name), newForecaster(t, name)
				if got := f.Forecast(900); got != 0 {
					t.Fatalf("%d before the first measurement", got)
				}
				at, most := noon, 0
				step := rapid.SampledFrom([]int64{0, minute, 5 * minute, 15 * minute, 3 * hour, 5 * day})
				for range rapid.IntRange(1, 300).Draw(t, "measurements") {
					at = at.Add(step.Draw(t, "step"))
					inUse := rapid.IntRange(-5, 1000).Draw(t, "in use")
					most = max(most, inUse)
					f.Observe(at, inUse)
					again.Observe(at, inUse)
					ahead := rapid.SampledFrom([]int64{-1, 0, 15 * minute, 9 * day, int64(span.Forever)}).Draw(t, "ahead")
					got := f.Forecast(ahead)
					if got < max(inUse, 0) || got > 20*max(most, 1) {
						t.Fatalf("%d are forecast for %d seconds where %d are in use and %d were at most", got, ahead, inUse, most)
					}
					if other := again.Forecast(ahead); other != got {
						t.Fatalf("%d and then %d for the same measurements", got, other)
					}
				}
			})
		})
	}
}

func TestTheMovingMaximumIsThatOfItsWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newForecaster(t, "moving_maximum", energy.Window(10*minute))
		var seen []energy.Demand
		at := noon
		for range rapid.IntRange(1, 60).Draw(t, "measurements") {
			at = at.Add(rapid.Int64Range(0, 5*minute).Draw(t, "step"))
			seen = append(seen, energy.Demand{At: at, InUse: rapid.IntRange(0, 9).Draw(t, "in use")})
			f.Observe(at, seen[len(seen)-1].InUse)
			want := 0
			for _, d := range seen {
				if d.At >= at-10*minute {
					want = max(want, d.InUse)
				}
			}
			if got := f.Forecast(0); got != want {
				t.Fatalf("got %d, want %d of %v", got, want, seen)
			}
		}
	})
}

// monday is the first instant of a week.
const monday = span.Instant(1_798_416_000)

// observed tells f how many hosts are in use, every five minutes in [from, until).
func observed(f energy.Forecaster, from, until span.Instant, inUse func(span.Instant) int) {
	for at := from; at < until; at = at.Add(5 * minute) {
		f.Observe(at, inUse(at))
	}
}

func TestTimeOfWeekKnowsTheMondays(t *testing.T) {
	f := newForecaster(t, "time_of_week", energy.Weeks(2))
	observed(f, monday, monday+7*day+9*hour, func(at span.Instant) int {
		if (at-monday)%(7*day) >= 9*hour && (at-monday)%(7*day) < 10*hour {
			return 50
		}
		return 3
	})
	if got := f.Forecast(15 * minute); got != 50 {
		t.Errorf("on the second Monday before nine %d are forecast, want 50", got)
	}
	quiet := func(span.Instant) int { return 4 }
	observed(f, monday+7*day+9*hour, monday+8*day+9*hour, quiet)
	if got := f.Forecast(15 * minute); got != 4 {
		t.Errorf("on Tuesday before nine %d are forecast, want 4", got)
	}
	observed(f, monday+8*day+9*hour, monday+21*day+9*hour, quiet)
	if got := f.Forecast(15 * minute); got != 4 {
		t.Errorf("three weeks later %d are forecast, want 4", got)
	}
}

func TestHoltWintersKnowsTheDays(t *testing.T) {
	f := newForecaster(t, "holt_winters")
	days := func(at span.Instant) int {
		if h := int64(at) % day / hour; h >= 8 && h < 18 {
			return 40
		}
		return 5
	}
	observed(f, monday, monday+day+8*hour, days)
	if got := f.Forecast(15 * minute); got != 5 {
		t.Errorf("on the second day %d are forecast, want 5, the last value", got)
	}
	observed(f, monday+day+8*hour, monday+20*day+8*hour, days)
	if got := f.Forecast(15 * minute); got < 36 || got > 50 {
		t.Errorf("before eight %d are forecast, want about 40", got)
	}
	observed(f, monday+20*day+8*hour, monday+20*day+23*hour, days)
	if got := f.Forecast(15 * minute); got < 5 || got > 20 {
		t.Errorf("at night %d are forecast, want about 5", got)
	}
	observed(f, monday+27*day, monday+27*day+hour, func(span.Instant) int { return 100 })
	if got := f.Forecast(15 * minute); got != 100 {
		t.Errorf("after days without a measurement %d are forecast, want the last value, 100", got)
	}
}

func TestHoltWintersIsExactOfWhatNeverChanges(t *testing.T) {
	f := newForecaster(t, "holt_winters")
	observed(f, monday, monday+9*day, func(span.Instant) int { return 7 })
	if got := f.Forecast(hour); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

func BenchmarkForecasters(b *testing.B) {
	for _, name := range energy.Forecasters {
		b.Run(name, func(b *testing.B) {
			f := newForecaster(b, name)
			at := monday
			b.ReportAllocs()
			for b.Loop() {
				at += minute
				f.Observe(at, int(at/minute)%977)
				f.Forecast(15 * minute)
			}
		})
	}
}
