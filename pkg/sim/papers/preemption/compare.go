// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// outcome is the results of all runs of a setting.
type outcome struct {
	setting
	tallies []*tally // by run
}

// values returns a measure of each run; nil if the measure is undefined in any run.
func (c outcome) values(o Options, m measure) (values []float64) {
	for _, t := range c.tallies {
		v, has := m.of(o, t)
		if !has {
			return nil
		}
		values = append(values, v)
	}
	return values
}

// compared contains the outcomes of all settings.
type compared struct {
	main   []outcome // at the share of the options
	shares []outcome // of the costs at the other shares, by share
}

// compare runs the clouds of all settings concurrently.
func (o Options) compare(ctx context.Context, from source, progress sim.Progress) (compared, error) {
	settings := o.settings()
	mains := len(settings)
	if from.marks() {
		for _, share := range o.otherShares() {
			for _, s := range o.settings() {
				if s.cost == "" || s.blind || s.cost == "age" && slices.Contains(o.Costs, "running_time") {
					continue // age equals running_time here: an instance runs as soon as it is placed
				}
				s.share = share
				settings = append(settings, s)
			}
		}
	}
	tallies, err := sim.Grid(ctx, settings, o.Runs, progress, func(ctx context.Context, s setting, run int) (*tally, error) {
		return o.trial(ctx, from, s, run, nil)
	})
	if err != nil {
		return compared{}, err
	}
	var c compared
	for i, s := range settings {
		if one := (outcome{s, tallies[s]}); i < mains {
			c.main = append(c.main, one)
		} else {
			c.shares = append(c.shares, one)
		}
	}
	return c, nil
}

// otherShares returns the Shares except the option Share, sorted.
func (o Options) otherShares() []float64 {
	list := slices.DeleteFunc(slices.Clone(o.Shares), func(s float64) bool { return s == o.Share })
	slices.Sort(list)
	return slices.Compact(list)
}

// named returns the outcome of the setting with a name, at the option Share.
func (c compared) named(name string) (outcome, bool) {
	i := slices.IndexFunc(c.main, func(one outcome) bool { return one.name == name })
	if i < 0 {
		return outcome{}, false
	}
	return c.main[i], true
}

// overShares returns the outcomes of the setting with a name, sorted by share.
func (c compared) overShares(name string) []outcome {
	list := slices.DeleteFunc(slices.Concat(c.main, c.shares), func(one outcome) bool { return one.name != name })
	slices.SortStableFunc(list, func(a, b outcome) int { return cmp.Compare(a.share, b.share) })
	return list
}

// timesLeast estimates, for each setting of main that chooses victims, by its name, the ratio of a
// measure to the least value of these settings.
func (o Options) timesLeast(c compared, m measure) map[string]sim.Estimate {
	values := map[string][]float64{}
	least := slices.Repeat([]float64{math.Inf(1)}, o.Runs)
	for _, one := range c.main {
		if one.cost == "" {
			continue
		}
		of := one.values(o, m)
		values[one.name] = of
		for run, v := range of {
			least[run] = min(least[run], v)
		}
	}
	times := map[string]sim.Estimate{}
	for name, of := range values {
		ratios := make([]float64, 0, len(of))
		for run, v := range of {
			if least[run] > 0 {
				ratios = append(ratios, v/least[run])
			}
		}
		if len(ratios) > 0 {
			times[name] = sim.Mean(ratios)
		}
	}
	return times
}

// difference estimates by how much a measure is greater in b than in a. In each run both had the
// same machines, so the difference is more precise than either value alone.
func (o Options) difference(m measure, a, b outcome) sim.Estimate {
	x, y := a.values(o, m), b.values(o, m)
	if x == nil || y == nil {
		return sim.Estimate{}
	}
	return sim.Mean(sim.Differences(y, x))
}
