// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

// variant is a setting that differs from the base in one factor.
type variant struct {
	factor string // empty is the base
	value  string
	x      float64 // the value as a number, in the unit of the figures
	Setting
}

// The values of the factors.
var (
	shares   = []float64{0, 0.25, 0.5, 0.75, 1}
	horizons = []int64{0, 300, 900, 1800, 3600, 7200}
	idles    = []int{1, 5, 15, 30, 60}
	boots    = []int64{30, 152, 300, 600, 1200}
)

// settings returns the base, then for each swept factor the settings with its values. Each factor's
// values include that of the base.
func (o *Options) settings() []variant {
	all := []variant{{value: "base", Setting: o.Base}}
	for _, factor := range o.Sweeps {
		all = append(all, o.sweep(factor)...)
	}
	return all
}

func (o *Options) sweep(factor string) (list []variant) {
	add := func(x float64, value string, change func(s *Setting)) {
		v := variant{factor, value, x, o.Base}
		change(&v.Setting)
		list = append(list, v)
	}
	switch factor {
	case Share:
		for _, x := range with(shares, o.Base.Share) {
			add(100*x, fmt.Sprintf("%.0f %%", 100*x), func(s *Setting) { s.Share = x })
		}
	case Horizon:
		for _, x := range with(horizons, o.Base.Horizon) {
			add(float64(x)/60, seconds(x), func(s *Setting) { s.Horizon = x })
		}
	case Idleness:
		for _, x := range with(idles, o.Base.Idle) {
			add(float64(x), fmt.Sprintf("%d min", x), func(s *Setting) { s.Idle = x })
		}
	case Boot:
		for _, x := range with(boots, o.Base.Boot) {
			add(float64(x)/60, seconds(x), func(s *Setting) { s.Boot = x })
		}
	case Forecaster:
		for i, name := range energy.Forecasters {
			add(float64(i), name, func(s *Setting) { s.Forecaster = name })
		}
	}
	return list
}

// with returns the values in ascending order, with one added if it is not among them.
func with[T int | int64 | float64](values []T, one T) (all []T) {
	for _, v := range values {
		if one < v && (len(all) == 0 || all[len(all)-1] < one) {
			all = append(all, one)
		}
		all = append(all, v)
	}
	if last := values[len(values)-1]; one > last {
		all = append(all, one)
	}
	return all
}

// seconds formats a duration in the largest unit in which it is a whole number.
func seconds(n int64) string {
	switch {
	case n != 0 && n%hour == 0:
		return fmt.Sprintf("%d h", n/hour)
	case n%60 == 0:
		return fmt.Sprintf("%d min", n/60)
	}
	return fmt.Sprintf("%d s", n)
}

// effective returns the setting with the base's values of those parameters that do not affect a
// strategy, so that equal cells run once. These are all parameters if all hosts stay on, and share
// and horizon if no request is known ahead.
func (o *Options) effective(strategy Strategy, s Setting) Setting {
	switch strategy {
	case AlwaysOn:
		return o.Base
	case SwitchOff:
		s.Share, s.Horizon = o.Base.Share, o.Base.Horizon
	}
	return s
}
