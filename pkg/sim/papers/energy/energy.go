// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// cell is one setting of the simulation with one strategy.
type cell struct {
	strategy Strategy
	Setting
}

// results are the outcomes of all cells, one for each run.
type results struct {
	options  Options
	demands  []*demand // by run; with a trace they are identical
	variants []variant
	outcomes map[cell][]outcome
}

// Run implements sim.Experiment.
func (o Options) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	r, err := run(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	return r.report(), nil
}

func run(ctx context.Context, o Options, progress sim.Progress) (*results, error) {
	r := &results{options: o, variants: o.settings()}
	var err error
	if r.demands, err = o.demands(); err != nil {
		return nil, err
	}
	r.outcomes, err = sim.Grid(ctx, r.cells(), o.Runs, progress, func(ctx context.Context, c cell, run int) (outcome, error) {
		out, err := o.try(ctx, r.demands[run], c.strategy, c.Setting, run)
		return out, fault.While(err, "run %d of %s", run, c.strategy)
	})
	return r, err
}

// demands returns the demand of each run.
func (o *Options) demands() ([]*demand, error) {
	all := make([]*demand, o.Runs)
	for i := range all {
		if i > 0 && o.Trace != "" {
			all[i] = all[0]
			continue
		}
		var err error
		if all[i], err = o.demand(i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// cells returns the distinct cells that the experiment must run.
func (r *results) cells() (cells []cell) {
	seen := map[cell]bool{}
	for _, v := range r.variants {
		for _, strategy := range Strategies {
			c := cell{strategy, r.options.effective(strategy, v.Setting)}
			if !seen[c] {
				seen[c] = true
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// of returns the outcomes of a strategy with a setting, one for each run.
func (r *results) of(strategy Strategy, s Setting) []outcome {
	return r.outcomes[cell{strategy, r.options.effective(strategy, s)}]
}
