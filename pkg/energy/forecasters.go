// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// DefaultForecaster is the forecaster with the best score on the recorded reservations of
// Grid'5000 (docs/energy-forecast.md).
const DefaultForecaster = "moving_maximum"

// Forecasters contains the names of all forecasters, the simplest first.
var Forecasters = func() (names []string) {
	for _, f := range forecasters {
		names = append(names, f.name)
	}
	return names
}()

var forecasters = []struct {
	name string
	make func(options) Forecaster
}{
	{"last_value", func(options) Forecaster { return &lastValue{} }},
	{"moving_maximum", func(o options) Forecaster { return &movingMaximum{window: o.window} }},
	{"time_of_week", func(o options) Forecaster { return newTimeOfWeek(o.weeks) }},
	{"holt_winters", func(options) Forecaster { return newHoltWinters() }},
}

type options struct {
	window int64
	weeks  int
}

// ForecasterOption sets an option of a forecaster. Forecasters without the option ignore
// it.
type ForecasterOption func(*options)

// Window sets how many seconds of the past moving_maximum considers; the default is one hour.
func Window(seconds int64) ForecasterOption { return func(o *options) { o.window = seconds } }

// Weeks sets how many weeks of the past time_of_week considers; the default is 4.
func Weeks(n int) ForecasterOption { return func(o *options) { o.weeks = n } }

const (
	quarter     = int64(15 * time.Minute / time.Second)
	day         = int64(24 * time.Hour / time.Second)
	mostWeeks   = 52
	mostSeconds = 30 * day
)

// NewForecaster returns the forecaster with a name. Every forecaster is deterministic, and needs
// little time for a measurement and bounded memory. The error is an Invalid fault; for an unknown
// name it lists the known names.
func NewForecaster(name string, given ...ForecasterOption) (Forecaster, error) {
	o := options{window: 4 * quarter, weeks: 4}
	for _, set := range given {
		set(&o)
	}
	known := slices.Index(Forecasters, name)
	switch {
	case known < 0:
		return nil, fault.Field("forecaster", "%s: %s are known", fault.Unknown("forecaster", name, Forecasters), strings.Join(Forecasters, ", "))
	case o.window < 1 || o.window > mostSeconds:
		return nil, fault.Field("window", "must be from 1 to %d seconds", mostSeconds)
	case o.weeks < 1 || o.weeks > mostWeeks:
		return nil, fault.Field("weeks", "must be from 1 to %d", mostWeeks)
	}
	return forecasters[known].make(o), nil
}

// lastValue predicts that as many hosts stay in use as are in use now (erratum E004-7).
type lastValue struct{ last int }

func (f *lastValue) Observe(_ span.Instant, inUse int) { f.last = max(inUse, 0) }

func (f *lastValue) Forecast(int64) int { return f.last }

// movingMaximum predicts the largest number of hosts in use within the window.
type movingMaximum struct {
	window int64
	// peaks are the measurements of the window that no later measurement equals or exceeds, the
	// largest first.
	peaks []Demand
}

// mostPeaks limits the memory if measurements follow each other quickly.
const mostPeaks = 1 << 16

// Observe implements Forecaster.
func (f *movingMaximum) Observe(at span.Instant, inUse int) {
	inUse = max(inUse, 0)
	for n := len(f.peaks); n > 0 && f.peaks[n-1].InUse <= inUse; n-- {
		f.peaks = f.peaks[:n-1]
	}
	f.peaks = append(f.peaks, Demand{At: at, InUse: inUse})
	old := 0
	for f.peaks[old].At < at.Add(-f.window) || len(f.peaks)-old > mostPeaks {
		old++
	}
	f.peaks = slices.Delete(f.peaks, 0, old)
}

// Forecast implements Forecaster: the largest demand within the window, whatever the time ahead.
func (f *movingMaximum) Forecast(int64) int {
	if len(f.peaks) == 0 {
		return 0
	}
	return f.peaks[0].InUse
}
