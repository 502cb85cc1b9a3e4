// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// market has drawn prices, one for each hour of the clock of the replay. They are made up: a mean of 80, a peak in the
// evening at twice the prices of the night and of noon, days that are dearer or cheaper than others, and noise.
type market struct {
	began  span.Instant // a midnight
	prices []int64      // of each hour from then on, in hundredths
	random *rand.Rand
	// ahead is true if prices are known as those of a day-ahead market: until midnight, and from 13:00 on until the next one.
	ahead bool

	from, until span.Instant // what newest covers
	newest      *tariff.Reading
}

const (
	daySeconds   = 24 * 3600
	meanPrice    = 8000
	dayDeviation = 0.3 // of the logarithm of the level of a day
	hourNoise    = 0.1 // the standard deviation of the price of an hour, as a share of it
	publishedAt  = 13 * 3600
	// knownFor is how far ahead all prices are known, in days, where they are.
	knownFor = 60
)

func newMarket(from span.Instant, random *rand.Rand, ahead bool) *market {
	return &market{began: midnight(from), random: random, ahead: ahead}
}

func midnight(t span.Instant) span.Instant { return t - t%daySeconds }

// shape returns the price of an hour as a multiple of the mean of a day.
func shape(hour int) float64 {
	h := float64(hour)
	return 1 + 0.25*math.Cos((h-19)*math.Pi/12) + 0.25*math.Cos((h-7.5)*math.Pi/6)
}

// price returns the price of the hour that begins at an instant.
func (m *market) price(hour span.Instant) int64 {
	i := int(hour-m.began) / 3600
	for i >= len(m.prices) {
		level := math.Exp(dayDeviation*m.random.NormFloat64() - dayDeviation*dayDeviation/2)
		for hour := range 24 {
			m.prices = append(m.prices, int64(math.Round(meanPrice*level*shape(hour)*(1+hourNoise*m.random.NormFloat64()))))
		}
	}
	return m.prices[i]
}

// known returns the tariff as the service knows it at an instant.
func (m *market) known(now span.Instant) *tariff.Reading {
	from := midnight(now)
	until := from.Add(knownFor * daySeconds)
	if m.ahead {
		if until = from.Add(daySeconds); now-from >= publishedAt {
			until = until.Add(daySeconds)
		}
	}
	if m.newest != nil && from == m.from && until == m.until {
		return m.newest
	}
	var steps []tariff.Step
	for hour := from; hour < until; hour += 3600 {
		steps = append(steps, tariff.Step{Span: span.New(hour, 3600), Price: m.price(hour)})
	}
	curve, err := tariff.New(steps)
	if err != nil {
		panic("replay: a drawn tariff is wrong: " + err.Error())
	}
	m.from, m.until, m.newest = from, until, &tariff.Reading{Curve: curve, Written: now}
	return m.newest
}

// cost returns what a host costs throughout a span, in hundredths for an hour.
func (m *market) cost(w span.Span) (sum float64) {
	for at := w.Start; at < w.End; {
		hour := at - at%3600
		next := min(hour+3600, w.End)
		sum += float64(m.price(hour)) * float64(next-at) / 3600
		at = next
	}
	return sum
}
