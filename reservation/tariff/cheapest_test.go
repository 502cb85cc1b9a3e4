// SPDX-License-Identifier: Apache-2.0

package tariff_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// bySecond is a tariff as the price of each second that has one.
type bySecond map[span.Instant]int64

// drawSteps draws steps with some gaps, and the same as the price of each second.
func drawSteps(t *rapid.T, gaps bool) (steps []tariff.Step, prices bySecond) {
	at, prices := span.Instant(rapid.IntRange(0, 5).Draw(t, "first")), bySecond{}
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		if gaps && rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
			at += span.Instant(rapid.IntRange(1, 4).Draw(t, "gap lasts"))
		}
		s := tariff.Step{Span: span.New(at, rapid.Int64Range(1, 9).Draw(t, "lasts")), Price: rapid.Int64Range(-4, 4).Draw(t, "price")}
		for second := s.Span.Start; second < s.Span.End; second++ {
			prices[second] = s.Price
		}
		steps, at = append(steps, s), s.Span.End
	}
	return steps, prices
}

// cost adds up the prices of so many seconds, one by one.
func (p bySecond) cost(start span.Instant, seconds int64) (sum int64, known bool) {
	for second := start; second < start+span.Instant(seconds); second++ {
		price, has := p[second]
		if !has {
			return 0, false
		}
		sum += price
	}
	return sum, true
}

// drawRuns draws disjoint spans of starts in order.
func drawRuns(t *rapid.T) (runs []span.Span) {
	at := span.Instant(0)
	for range rapid.IntRange(0, 4).Draw(t, "runs") {
		at += span.Instant(rapid.IntRange(0, 6).Draw(t, "pause"))
		run := span.New(at, rapid.Int64Range(1, 20).Draw(t, "run"))
		runs, at = append(runs, run), run.End
	}
	return runs
}

func TestTheCheapestStartIsTheOneOfAllSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, prices := drawSteps(t, true)
		runs, seconds := drawRuns(t), rapid.Int64Range(1, 25).Draw(t, "seconds")
		var want, least int64
		found := false
		for _, run := range runs {
			for start := run.Start; start < run.End; start++ {
				if cost, known := prices.cost(start, seconds); known && (!found || cost < least) {
					want, least, found = int64(start), cost, true
				}
			}
		}
		curve, err := tariff.New(steps)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := curve.Cheapest(slices.Values(runs), seconds); ok != found || int64(got) != want {
			t.Errorf("the cheapest %d seconds of %v in %v start at %d (%v), want %d (%v)", seconds, steps, runs, got, ok, want, found)
		}
	})
}

func TestPricesAreCoveredUntilTheFirstSecondWithoutOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, prices := drawSteps(t, true)
		from := span.Instant(rapid.IntRange(0, 60).Draw(t, "from"))
		want := from
		for has := true; has; _, has = prices[want] {
			if _, has := prices[want]; !has {
				break
			}
			want++
		}
		curve, err := tariff.New(steps)
		if err != nil {
			t.Fatal(err)
		}
		if got := curve.Covered(from); got != want {
			t.Errorf("%v cover from %d until %d, want %d", steps, from, got, want)
		}
	})
}

// The sum of the largest prices for the longest time, of both signs, is the largest number that a comparison meets.
func TestTheLargestCostsCompareExactly(t *testing.T) {
	half := int64(tariff.Longest / 2)
	curve, err := tariff.New([]tariff.Step{
		{Span: span.New(0, half), Price: tariff.MostPrice},
		{Span: span.New(span.Instant(half), half), Price: -tariff.MostPrice},
	})
	if err != nil {
		t.Fatal(err)
	}
	if start, ok := curve.Cheapest(slices.Values([]span.Span{{Start: 0, End: span.Instant(half) + 1}}), half); !ok || start != span.Instant(half) {
		t.Errorf("the cheapest half begins at %d (%v), want %d", start, ok, half)
	}
}

func TestAReadingIsStaleAfterItsAge(t *testing.T) {
	for _, c := range []struct {
		maxAge int64
		now    span.Instant
		want   bool
	}{{60, 160, false}, {60, 161, true}, {0, 1_000_000, false}} {
		r := tariff.Reading{Written: 100, MaxAge: c.maxAge}
		if got := r.Stale(c.now); got != c.want {
			t.Errorf("a reading of 100 that may be %d s old is stale at %d: %v, want %v", c.maxAge, c.now, got, c.want)
		}
	}
}
