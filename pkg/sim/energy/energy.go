// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"context"
	"fmt"

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

// Run runs the evaluation and reports on it.
func Run(ctx context.Context, o Options, progress sim.Progress) (*sim.Report, error) {
	r, err := run(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	return r.report(), nil
}

func run(ctx context.Context, o Options, progress sim.Progress) (*results, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &results{options: o, variants: o.settings(), outcomes: map[cell][]outcome{}}
	var err error
	if r.demands, err = o.demands(); err != nil {
		return nil, err
	}
	cells := r.cells()
	done, err := sim.Runs(ctx, len(cells)*o.Runs, progress, func(ctx context.Context, i int) (outcome, error) {
		c, n := cells[i/o.Runs], i%o.Runs
		out, err := o.try(ctx, r.demands[n], c.strategy, c.Setting, n)
		if err != nil {
			return out, fmt.Errorf("run %d of %s: %w", n, c.strategy, err)
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	for i, c := range cells {
		r.outcomes[c] = done[i*o.Runs : (i+1)*o.Runs]
	}
	return r, nil
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
