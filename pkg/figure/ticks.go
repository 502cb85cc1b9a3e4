// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// numberTicks marks round numbers: multiples of 1, 2 or 5 times a power of ten.
type numberTicks struct{}

// Ticks returns four to eleven ticks, or only one at low if the range is empty.
func (numberTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	const least, digits = 4, 10 // further digits are rounding errors of the products
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', digits, 64)}}
	}
	power := math.Pow(10, math.Floor(math.Log10(high-low)))
	step := power
	for _, part := range []float64{1, 2, 5, 10} {
		if step = power / part; math.Floor(high/step)-math.Ceil(low/step)+1 >= least {
			break
		}
	}
	for n := math.Ceil(low / step); n*step <= high; n++ {
		value := n*step + 0 // no -0
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', digits, 64)})
	}
	return ticks
}

// logTicks marks 1 to 9 times each power of ten. It names the powers, and on up to three decades
// also three times a power.
type logTicks struct{}

// Ticks needs a low above 0.
func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	const few, rounding = 3, 1e-9
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	for power := first; power <= last; power++ {
		for n := 1; n <= 9; n++ {
			value := float64(n) * math.Pow(10, power)
			if value < low*(1-rounding) || value > high*(1+rounding) {
				continue
			}
			tick := plot.Tick{Value: value}
			if n == 1 || n == 3 && last-first <= few {
				tick.Label = strconv.FormatFloat(value, 'g', 10, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// timeTicks marks round times in UTC.
type timeTicks struct{}

// Ticks returns at most eleven ticks.
func (timeTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	const most = 10
	hour, day := int64(3600), int64(86400)
	step, format := int64(60), "15:04"
	for _, next := range []int64{300, 900, hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 28 * day, 91 * day, 364 * day} {
		if (high-low)/float64(step) <= most {
			break
		}
		step = next
	}
	switch {
	case step >= day:
		format = "Mon 2 Jan"
	case high-low > float64(day):
		format = "Mon 15:04"
	}
	for at := (int64(low)/step + 1) * step; float64(at) <= high && len(ticks) <= most; at += step {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: time.Unix(at, 0).UTC().Format(format)})
	}
	return ticks
}
