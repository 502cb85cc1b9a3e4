// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/sim"

// measure is a quantity of a run.
type measure struct {
	name, unit string
	digits     int
	of         func(out *outcome) float64
}

// The measures of the paper, and others.
var (
	resIdle = measure{"res_idle", "core-hours", 0, func(out *outcome) float64 { return float64(out.ResIdle()) / float64(hour) }}
	savings = measure{"e_savings", "core-hours", 0, func(out *outcome) float64 { return float64(out.Savings()) / float64(hour) }}
	delay   = measure{"delay_req", "cores", 1, func(out *outcome) float64 { return out.Delay }}

	saved    = measure{"saved", "% of res_idle", 1, func(out *outcome) float64 { return percent(float64(out.Savings()), float64(out.ResIdle())) }}
	kWh      = measure{"energy", "kWh", 0, func(out *outcome) float64 { return out.KWh() }}
	delayed  = measure{"delayed", "% of requests", 1, func(out *outcome) float64 { return percent(float64(out.Delayed), float64(out.Begun)) }}
	ahead    = measure{"known ahead", "% of requests", 1, func(out *outcome) float64 { return percent(float64(out.ahead), float64(out.Begun)) }}
	late     = measure{"late reservations", "of those known ahead", 1, func(out *outcome) float64 { return float64(out.late) }}
	switches = measure{"switches", "per day", 1, func(out *outcome) float64 {
		return float64(out.Boots+out.Shutdowns) / (float64(out.Until-out.Since) / float64(day))
	}}
	refused = measure{"refused", "requests", 1, func(out *outcome) float64 { return float64(out.Refused) }}
	halted  = measure{"halted", "% of the time", 1, func(out *outcome) float64 { return percent(float64(out.Halted), float64(out.Until-out.Since)) }}

	measures = []measure{resIdle, savings, saved, delay, delayed, kWh, switches, ahead, late, refused, halted}
)

func percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// estimate estimates a measure from the runs of one cell.
func (m *measure) estimate(runs []outcome) sim.Estimate {
	return sim.Mean(sim.Each(runs, func(out outcome) float64 { return m.of(&out) }))
}
