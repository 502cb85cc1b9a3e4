package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	power "github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/sim/energy"
)

func (p *process) simulateEnergyCommand() *cobra.Command {
	return simulation(p, experiment[energy.Options]{
		use:   "energy",
		short: "What switching idle hosts off saves, and who waits for it (paper 004)",
		long: `What is saved where idle hosts are switched off, how long requests wait for hosts to boot,
and what becomes of both where a share of the requests is known ahead: the evaluation that
Rossigneux, Lefèvre and Assunção set up in "A Resource Reservation System to Improve the
Support for HPC Applications in OpenStack". Always on, switched off, and switched off with
reservations; then the share of reservations, the horizon, the idleness, the boot time and
the forecaster, one after the other.

Without --trace the jobs are made up after the model of Lublin and Feitelson.`,
		example: `  almanac simulate energy --out energy
  almanac simulate energy --out energy --trace KTH-SP2-1996-2.swf.gz --from 100 --days 28`,
		options: energy.Defaults(),
		flags: func(f *pflag.FlagSet, o *energy.Options) {
			f.StringVar(&o.Trace, "trace", o.Trace, "file of jobs or reservations: SWF, LWF, OAR, GWF or CSV")
			f.IntVar(&o.ProcsPerHost, "procs-per-host", o.ProcsPerHost, "processors of a host, for traces that count processors")
			f.IntVar(&o.Processors, "processors", o.Processors, "hosts of the machine that jobs are made up for")
			f.Float64Var(&o.PerDay, "per-day", o.PerDay, "jobs that are made up for a day")
			f.IntVar(&o.From, "from", o.From, "day of the workload with which it begins")
			f.IntVar(&o.Days, "days", o.Days, "days that are simulated; 0 is all of a trace")
			f.IntVar(&o.Hours.From, "working-from", o.Hours.From, "hour with which a working day begins")
			f.IntVar(&o.Hours.To, "working-to", o.Hours.To, "hour with which it ends")
			f.IntVar(&o.Zone, "zone", o.Zone, "hours that the clock of these is east of UTC")
			f.Float64Var(&o.Safety, "safety", o.Safety, "share of hosts beside those that are ever used at once")
			f.Float64Var(&o.Base.Share, "share", o.Base.Share, "share of the requests that are known ahead")
			f.Var((*period)(&o.Base.Horizon), "horizon", "how far ahead reservations are committed")
			f.IntVar(&o.Base.Idle, "idle-intervals", o.Base.Idle, "minutes for which a host must be idle")
			f.Var((*period)(&o.Base.Boot), "boot", "the median boot time")
			f.StringVar(&o.Base.Forecaster, "forecaster", o.Base.Forecaster, strings.Join(power.Forecasters, ", "))
			f.StringSliceVar(&o.Sweeps, "sweeps", o.Sweeps, fmt.Sprintf("what is varied, one after the other: %s", strings.Join(energy.Factors, ", ")))
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with other random numbers")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what all random numbers follow from")
		},
		check: energy.Options.Check,
		run:   energy.Run,
	})
}
