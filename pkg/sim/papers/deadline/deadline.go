// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// results are the outcomes of all runs, by setting and policy.
type results struct {
	Options
	outcomes map[key][]outcome // by run
}

// key identifies the runs of a policy with a setting.
type key struct {
	setting
	policy calendar.Policy
}

// run simulates each setting with each policy, Runs times. Within a run all policies get the same
// requests.
func (o Options) run(ctx context.Context, settings []setting, progress sim.Progress) (*results, error) {
	var keys []key
	for _, s := range settings {
		for _, p := range calendar.PaperPolicies {
			keys = append(keys, key{s, p})
		}
	}
	outcomes, err := sim.Grid(ctx, keys, o.Runs, progress, func(ctx context.Context, of key, run int) (outcome, error) {
		return trial(ctx, o.Hosts, of.policy, 0, o.requests(of.setting, run))
	})
	return &results{o, outcomes}, err
}

// measure is one of the two measures of the paper.
type measure struct {
	name string
	axis string
	// share is true if the measure is a share between 0 and 1.
	share bool
	of    func(outcome) float64
}

var (
	acceptance = measure{"acceptance rate", "acceptance rate (share of requests)", true, func(o outcome) float64 { return o.Acceptance }}
	slowdown   = measure{"average slowdown", "average slowdown (times the duration)", false, func(o outcome) float64 { return o.Slowdown }}
)

// values returns a measure of a policy with a setting, one value for each run.
func (r *results) values(m measure, s setting, p calendar.Policy) []float64 {
	return sim.Each(r.outcomes[key{s, p}], m.of)
}

// mean estimates a measure of a policy with a setting from its runs.
func (r *results) mean(m measure, s setting, p calendar.Policy) sim.Estimate {
	return sim.Mean(r.values(m, s, p))
}
