// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// Run replays the traces under each setting. progress receives the number of jobs, counted over all
// settings; it may be nil. Before it replays any job, Run returns an Invalid fault for input that
// it cannot read or settings that no machine can meet.
func Run(ctx context.Context, o Options, progress sim.Progress) (*sim.Report, error) {
	if len(o.Settings) == 0 {
		o.Settings = DefaultSettings()
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	hosts, in, err := o.prepare(ctx)
	if err != nil {
		return nil, err
	}
	results, err := trials(ctx, &o, in, hosts, progress)
	if err != nil {
		return nil, err
	}
	return report(&o, in, hosts, results), nil
}

// prepare reads the hosts, and reads the traces once.
func (o *Options) prepare(ctx context.Context) ([]inventory.Host, *survey, error) {
	said, err := 0, error(nil)
	if o.Hosts == 0 && o.HostsFile == "" {
		if said, err = o.hostsSaid(); err != nil {
			return nil, nil, err
		}
	}
	hosts, err := o.machine(ctx, said)
	if err != nil {
		return nil, nil, err
	}
	for i := range o.Settings {
		if err := o.Settings[i].meets(fmt.Sprintf("settings[%d].", i), len(hosts)); err != nil {
			return nil, nil, err
		}
	}
	in, err := o.look(ctx, len(hosts))
	return hosts, in, err
}

func trials(ctx context.Context, o *Options, in *survey, hosts []inventory.Host, progress sim.Progress) ([]result, error) {
	var done atomic.Int64
	of := int(in.jobs) * len(o.Settings)
	// Where hosts are switched, a job takes milliseconds, so that the progress of few jobs is worth telling as well.
	every := int64(max(1, min(of/100, checkEvery)))
	tell := func() {
		if progress != nil {
			progress(int(done.Load()), of)
		}
	}
	results, err := sim.Runs(ctx, len(o.Settings), nil, func(ctx context.Context, i int) (result, error) {
		return runTrial(ctx, o, &o.Settings[i], in, hosts, func() {
			if done.Add(1)%every == 0 {
				tell()
			}
		})
	})
	tell()
	return results, err
}
