// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"strings"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// table returns all results, one measure of one setting in each row.
func (r *results) table() sim.Table {
	t := sim.Table{Columns: []string{"experiment", "trace", "setting", "measure", "mean", "half_width_95", "runs", "thesis"}}
	add := func(experiment, trace, setting, measure string, e sim.Estimate, printed any) {
		t.Add(experiment, trace, setting, measure, e.Mean, e.Half, e.Runs, printed)
	}
	if r.has(Accuracy) {
		for _, trace := range accuracyTraces {
			for _, p := range plans {
				runs := r.accuracy[accuracyKey{trace.name, p}]
				add(Accuracy, trace.name, string(p), "share_of_time", estimate(runs, meanShare), "")
				add(Accuracy, trace.name, string(p), "worst_share", estimate(runs, worstShare), "")
				add(Accuracy, trace.name, string(p), "had_all", estimate(runs, wholeShare), "")
			}
		}
	}
	if r.has(Disk) {
		for _, s := range staging.Strategies {
			printed := map[staging.Strategy]float64{staging.EDF: peakEDF, staging.JIT: peakJIT}[s]
			add(Disk, "94 reservations", string(s), "peak_gb", estimate(r.disk[s], diskPeak), printed)
			add(Disk, "94 reservations", string(s), "peak_gb_without_copies", estimate(r.disk[s], diskSent), "")
		}
	}
	if r.has(Reuse) {
		r.reuseRows(add)
	}
	if r.has(Mixes) {
		r.mixRows(add)
	}
	return t
}

type adder func(experiment, trace, setting, measure string, e sim.Estimate, printed any)

func (r *results) reuseRows(add adder) {
	for _, trace := range reuseTraces {
		for _, planner := range []bool{false, true} {
			for _, cached := range []bool{false, true} {
				setting := map[bool]string{false: "testbed", true: "planner"}[planner] + map[bool]string{true: " with cache"}[cached]
				runs := r.reuse[reuseKey{trace.name, planner, cached}]
				var printed any = ""
				switch {
				case !planner && !cached:
					printed = deployPlain
				case !planner && trace.name == reuseTraces[0].name:
					printed = deployUniform
				case !planner:
					printed = deploySkewed
				}
				add(Reuse, trace.name, setting, "deployment_s", estimate(runs, deployTime), printed)
				add(Reuse, trace.name, setting, "images_sent", estimate(runs, deploySent), "")
				if cached {
					add(Reuse, trace.name, setting, "lead_gb", sim.Mean(r.lead(trace.name, planner)), "")
				}
			}
		}
	}
}

func (r *results) mixRows(add adder) {
	for _, m := range allMixes() {
		p := inThesis[m]
		for _, s := range m.setups() {
			runs := r.of(m, s)
			var printed any = ""
			switch s.name {
			case plainSetup.name:
				printed = p.plain
			case predeployedSetup.name:
				printed = p.predeployed
			case prefetchedSetup.name:
				printed = p.prefetched
			case reusedSetup.name:
				printed = p.reused
			case backfilledSetup.name:
				printed = backfilledInThesis[m][1]
			case sentSetup.name:
				printed = backfilledInThesis[m][2]
			}
			setting := strings.ReplaceAll(s.name, ",", "")
			add(Mixes, m.String(), setting, "finish_s", estimate(runs, finish), printed)
			add(Mixes, m.String(), setting, "utilization", estimate(runs, utilization), "")
			add(Mixes, m.String(), setting, "suspensions", estimate(runs, suspensions), "")
			add(Mixes, m.String(), setting, "reservations_refused", estimate(runs, refusedShare), "")
			if s.images {
				add(Mixes, m.String(), setting, "images_sent", estimate(runs, mixSent), "")
				add(Mixes, m.String(), setting, "peak_gb", estimate(runs, mixPeak), "")
			}
		}
	}
}
