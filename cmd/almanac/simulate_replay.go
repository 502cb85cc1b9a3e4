package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/replay"
)

// replayed are the options of a replay, with the file that has its settings.
type replayed struct {
	replay.Options
	settings string
}

// read gives the options with the settings of the file.
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

func (p *process) simulateReplayCommand() *cobra.Command {
	return simulation(p, experiment[replayed]{
		use:   "replay --trace FILE",
		short: "Your own workload, under several settings side by side",
		long: `Your own workload under several settings, side by side, and which of them was best on
which measure. Each job is asked for as a reservation when it was submitted: one that was
reserved for its start, any other as soon as there is room within its patience. It is
booked for what its user estimated, and ends when it really ended.

Traces are told by their content, compressed with gzip or not:
  swf   Standard Workload Format: logs of parallel machines
  lwf   leases of Haizea
  oar   advance reservations of Grid'5000: JobID, StartTime, StopTime. What that does not
        have is made up, and the report says so: sizes 1 + JobID mod 8, submitted
        JobID mod 48 hours before the start
  gwf   jobs of the Grid Workloads Archive
  csv   with a header: submit, start, deadline, runtime or end, estimate, size, user …
Lines that cannot be used are counted by reason, with their numbers.

--settings names a YAML file; without it three policies are compared, and with the first of
them what comes of switching idle hosts off. What a setting does not say is as the service
has it by default; "energy" takes the options of [energy] by their names:

  settings:
    - name: careful
      policy: pe-worst-fit
      patience: 2d                # how long a job waits at most that has no deadline
      limits: {max_hosts: 64}     # that a user holds at once
      energy: {mode: auto, boot_time: 5m, max_off_per_cycle: 4, spare_hosts: 2}
    - {name: as in the paper, energy: {mode: auto, rules: paper}}`,
		example: `  almanac simulate replay --trace KTH-SP2-1996-2.swf.gz --out kth
  almanac simulate replay --trace blue.swf.gz --procs-per-host 8 --trace leases.lwf \
      --hosts 144 --settings settings.yaml --out blue`,
		options: replayed{Options: replay.Defaults()},
		flags: func(f *pflag.FlagSet, o *replayed) {
			f.StringArrayVar(&o.Traces, "trace", nil, "file with work; several are put together on one clock")
			f.StringArrayVar(&o.Formats, "trace-format", nil, "its format, where it is not to be told by the content: swf, lwf, oar, gwf, csv")
			f.IntVar(&o.ProcsPerHost, "procs-per-host", o.ProcsPerHost, "processors of a host, for traces that count processors")
			f.BoolVar(&o.MakeUp, "make-up", o.MakeUp, "make up what reservations of OAR lack")
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "how many hosts there are, all alike; 0 is what the trace says")
			f.StringVar(&o.HostsFile, "hosts-file", o.HostsFile, "the hosts, as the service has them in hosts.yaml")
			f.BoolVar(&o.Shapes, "shapes", o.Shapes, "jobs that have a shape share hosts, as instances do")
			f.StringVar(&o.settings, "settings", "", "YAML file with the settings that are compared")
			f.Int64Var(&o.MostJobs, "most-jobs", o.MostJobs, "end after so many jobs; 0 is all")
			f.Float64Var(&o.Draw.Idle, "idle-watts", o.Draw.Idle, "what an idle host takes")
			f.Float64Var(&o.Draw.Full, "full-watts", o.Draw.Full, "what a busy one takes")
			f.Float64Var(&o.Draw.Off, "off-watts", o.Draw.Off, "what one takes that is off")
			f.Float64Var(&o.Draw.BootJoules, "boot-joules", o.Draw.BootJoules, "energy of a shutdown and a boot")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what boot times follow from")
		},
		check: func(o replayed) error {
			options, err := o.read()
			if err != nil {
				return err
			}
			return options.Check()
		},
		run: func(ctx context.Context, o replayed, progress sim.Progress) (*sim.Report, error) {
			options, err := o.read()
			if err != nil {
				return nil, err
			}
			return replay.Run(ctx, options, progress)
		},
	})
}
