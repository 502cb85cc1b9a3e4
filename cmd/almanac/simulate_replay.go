// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/replay"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// replayed is the options of a replay, with the name of the file with its settings.
type replayed struct {
	replay.Options
	settings string
}

// read returns the options with the settings of the file.
func (r replayed) read() (replay.Options, error) {
	if r.settings == "" {
		return r.Options, nil
	}
	text, err := os.ReadFile(r.settings)
	if err != nil {
		return r.Options, &fault.Error{Kind: fault.Invalid, Field: "--settings", Message: "cannot be read", Err: err}
	}
	r.Settings, err = replay.ReadSettings(text)
	return r.Options, err
}

// Check implements sim.Experiment.
func (r replayed) Check() error {
	options, err := r.read()
	if err != nil {
		return err
	}
	return options.Check()
}

// Run implements sim.Experiment.
func (r replayed) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	options, err := r.read()
	if err != nil {
		return nil, err
	}
	return replay.Run(ctx, options, progress)
}

func (p *process) simulateTariffCommand() *cobra.Command {
	return simulation(p, experiment[replay.TariffOptions]{
		use:   "tariff --trace FILE",
		short: "Measure what your own workload saves with the policy cheapest",
		long: `Measure what your own workload saves with the policy cheapest beside first fit, and how much
longer it waits: for three lengths of the window, with prices that are known as on a
day-ahead market and with prices that are all known. The tariffs are made up: a daily curve
with days that are dearer than others, and noise. The workload is read as by "replay".`,
		example: `  almanac simulate tariff --trace KTH-SP2-1996-2.swf.gz --most-jobs 5000 --out tariff`,
		options: replay.TariffDefaults(),
		flags: func(f *pflag.FlagSet, o *replay.TariffOptions) {
			f.StringArrayVar(&o.Traces, "trace", nil, "workload file (repeatable: the files share one clock)")
			f.StringArrayVar(&o.Formats, "trace-format", nil, "format of each trace (default: recognized from its content)")
			f.IntVar(&o.ProcsPerHost, "procs-per-host", o.ProcsPerHost, "processors of a host, for traces that count processors")
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "number of equal hosts; 0 is the number in the trace")
			f.Int64Var(&o.MostJobs, "most-jobs", o.MostJobs, "maximum number of jobs; 0 is all")
			f.IntVar(&o.Runs, "runs", o.Runs, "number of tariffs that are drawn")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the tariffs")
		},
	})
}

func (p *process) simulateReplayCommand() *cobra.Command {
	return simulation(p, experiment[replayed]{
		use:   "replay --trace FILE",
		short: "Run your own workload under several settings",
		long: `Run your own workload under several settings, and report which setting was best on
which measure. Each job is requested as a reservation when it was submitted: a reserved
job for its start, any other job as soon as there is capacity within its patience. It is
booked for the estimate of its user, and ends at its real end.

The format of each trace, compressed with gzip or not, is recognized from its content:

` + workload.FormatsHelp + `

The report states what is made up for oar: the size 1 + JobID mod 8, the submission
JobID mod 48 hours before the start. Lines that cannot be used are counted by reason, with
the numbers of the first ones.

--settings names a YAML file. Without it three policies are compared, and the first of them
also with idle hosts switched off. A setting has the defaults of the service; "energy" has
the options of [energy] under their names:

  settings:
    - name: careful
      policy: pe-worst-fit
      patience: 2d                # maximum wait of a job without a deadline
      limits: {max_hosts: 64}     # of one user at once
      energy: {mode: auto, boot_time: 5m, max_off_per_cycle: 4, spare_hosts: 2}
    - {name: as in the paper, energy: {mode: auto, rules: paper}}`,
		example: `  almanac simulate replay --trace KTH-SP2-1996-2.swf.gz --out kth
  almanac simulate replay --trace blue.swf.gz --procs-per-host 8 --trace leases.lwf \
      --hosts 144 --settings settings.yaml --out blue`,
		options: replayed{Options: replay.Defaults()},
		flags: func(f *pflag.FlagSet, o *replayed) {
			f.StringArrayVar(&o.Traces, "trace", nil, "workload file (repeatable: the files share one clock)")
			f.StringArrayVar(&o.Formats, "trace-format", nil, "format of each trace (default: recognized from its content)")
			f.IntVar(&o.ProcsPerHost, "procs-per-host", o.ProcsPerHost, "processors of a host, for traces that count processors")
			f.BoolVar(&o.MakeUp, "make-up", o.MakeUp, "make up the sizes and submissions that oar lacks")
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "number of equal hosts; 0 is the number in the trace")
			f.StringVar(&o.HostsFile, "hosts-file", o.HostsFile, "hosts file, as the service reads it")
			f.BoolVar(&o.Shapes, "shapes", o.Shapes, "jobs with a shape share hosts, as instances do")
			f.StringVar(&o.settings, "settings", "", "YAML file with the settings to compare")
			f.Int64Var(&o.MostJobs, "most-jobs", o.MostJobs, "maximum number of jobs; 0 is all")
			f.Float64Var(&o.Draw.Idle, "idle-watts", o.Draw.Idle, "power draw of an idle host")
			f.Float64Var(&o.Draw.Full, "full-watts", o.Draw.Full, "power draw of a busy host")
			f.Float64Var(&o.Draw.Off, "off-watts", o.Draw.Off, "power draw of a host that is off")
			f.Float64Var(&o.Draw.BootJoules, "boot-joules", o.Draw.BootJoules, "energy of a shutdown and a boot")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the boot times")
		},
	})
}
