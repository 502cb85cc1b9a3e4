// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// Run implements sim.Experiment.
func (o Options) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	from, err := o.source(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := recompute()
	if err != nil {
		return nil, fmt.Errorf("recompute the snapshots of the paper: %w", err)
	}
	var times []timing
	if o.Latency {
		if times, err = o.latency(ctx); err != nil {
			return nil, fmt.Errorf("measure Figure 2 of the paper: %w", err)
		}
	}
	weeks, err := o.compare(ctx, from, progress)
	if err != nil {
		return nil, err
	}
	r := report{Report: sim.NewReport("Preemptible instances (paper 001)"), o: o}
	r.Results.Columns = []string{"part", "setting", "share", "measure", "unit", "mean", "half_interval_95", "runs"}
	r.introduce()
	r.snapshots(tables)
	r.figure2(times)
	r.weeks(from, weeks)
	r.deviations()
	return r.Report, nil
}
