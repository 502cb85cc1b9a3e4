// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// jobsOfDays is a log with a job of an hour on one host at each hour of some days.
func jobsOfDays(days int) string {
	text := "submit,runtime,size\n"
	for hour := range 24 * days {
		text += fmt.Sprintf("%d,3600,1\n", hour*3600)
	}
	return text
}

func tariffs(t *testing.T, csv string) TariffOptions {
	t.Helper()
	return TariffOptions{of(t, 8, csv), 3}
}

// measured returns the values of a measure for each tariff.
func measured(t *testing.T, r *sim.Report, window, manner, measure string) (values []float64) {
	t.Helper()
	for _, row := range r.Results.Rows {
		if row[0] == window && row[1] == manner && row[3] == measure {
			var value float64
			if _, err := fmt.Sscan(row[5], &value); err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
	}
	if len(values) != 3 {
		t.Fatalf("%s, %s: %d values of %s", window, manner, len(values), measure)
	}
	return values
}

func TestCheapestCostsLessAndWaitsLongerThanFirstFit(t *testing.T) {
	o := tariffs(t, jobsOfDays(6))
	r, err := sim.Perform(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(window, manner, measure string) float64 {
		return sim.Mean(measured(t, r, window, manner, measure)).Mean
	}
	const known, ahead, first = "cheapest, all prices known", "cheapest, day-ahead prices", "first fit"
	if a, b, c := at("6 h", first, "price"), at("6 h", known, "price"), at("3 d", known, "price"); !(a > b && b > c) {
		t.Errorf("prices of %g by first fit, %g within 6 h and %g within 3 d: they should fall", a, b, c)
	}
	if first, cheap := at("1 d", first, "mean_wait"), at("1 d", known, "mean_wait"); first != 0 || cheap == 0 {
		t.Errorf("on enough hosts first fit waits %g h, and cheapest %g h", first, cheap)
	}
	if a, b, c := at("6 h", ahead, "fallbacks"), at("1 d", ahead, "fallbacks"), at("3 d", ahead, "fallbacks"); a != 0 || b <= 0 || b >= 100 || c != 100 {
		t.Errorf("with day-ahead prices %g %% of windows of 6 h, %g %% of a day and %g %% of 3 d begin by first fit; want none, some, and all", a, b, c)
	}
	again, err := sim.Perform(t.Context(), o, nil)
	if err != nil || again.Markdown() != r.Markdown() || !slices.EqualFunc(again.Results.Rows, r.Results.Rows, slices.Equal) {
		t.Errorf("the same seed makes another report (%v)", err)
	}
	if !strings.Contains(r.Markdown(), "made up") {
		t.Error("the report does not state that the tariffs are made up")
	}
}

// The test adds up the price of each second.
func TestACostIsTheSumOfThePricesOfTheHours(t *testing.T) {
	m := newMarket(1_000_000, sim.Chance(7), false)
	w := span.Span{Start: 1_000_100, End: 1_020_000}
	sum := 0.0
	for at := w.Start; at < w.End; at++ {
		sum += float64(m.price(at-at%3600)) / 3600
	}
	if got := m.cost(w); math.Abs(got-sum) > 1e-6*sum {
		t.Errorf("cost %g, want %g", got, sum)
	}
}

func TestDayAheadPricesAreKnownUntilTheDayThatWasPublished(t *testing.T) {
	m := newMarket(0, sim.Chance(1), true)
	for now, want := range map[span.Instant]span.Instant{0: daySeconds, publishedAt - 1: daySeconds, publishedAt: 2 * daySeconds, daySeconds: 2 * daySeconds} {
		if got := m.known(now).Covered(now); got != want {
			t.Errorf("at %d prices are known until %d, want %d", now, got, want)
		}
	}
}

func TestWrongOptionsOfTariffsAreNamed(t *testing.T) {
	o := tariffs(t, jobsOfDays(1))
	o.Runs = 1
	if err := o.Check(); fault.Of(err).Field != "runs" {
		t.Errorf("one run: %v", err)
	}
	o.Runs, o.Traces = 3, nil
	if err := o.Check(); fault.Of(err).Field != "trace" {
		t.Errorf("no trace: %v", err)
	}
}
