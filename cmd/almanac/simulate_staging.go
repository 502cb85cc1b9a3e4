package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/sim/staging"
)

func (p *process) simulateStagingCommand() *cobra.Command {
	return simulation(p, experiment[staging.Options]{
		use:   "staging",
		short: "Measure image transfers and best-effort work next to reservations (paper 000)",
		long: `Measure whether the images of reservations arrive in time, the disk space for them, the
savings of reused images, and the duration of best-effort work next to reservations: the
experiments of Sotomayor's thesis, which contains paper 000 as a chapter. The report
compares each result with the thesis. All 36 mixes of reservations and best-effort work
run.

The only overhead of the thesis is the slowdown. The overheads of Haizea (HPDC 2008) are
--slowdown 0.05 --boot 10 --shutdown 10 --suspend-rate 50 --resume-rate 50.`,
		example: `  almanac simulate staging --out staging
  almanac simulate staging --out staging --experiment accuracy --experiment disk --runs 50
  almanac simulate staging --out staging --experiment mixes --rate 125 --image-size 5000`,
		options: staging.Defaults(),
		flags: func(f *pflag.FlagSet, o *staging.Options) {
			f.StringSliceVar(&o.Experiments, "experiment", o.Experiments, "experiments to run: "+strings.Join(staging.Experiments, ", "))
			f.IntVar(&o.Nodes, "nodes", o.Nodes, "number of nodes")
			f.IntVar(&o.CPUs, "cpus", o.CPUs, "CPUs of a node; a virtual machine uses one")
			f.Float64Var(&o.Rate, "rate", o.Rate, "transfer rate of the repository in MB/s for reservations, and again for best-effort work")
			f.Int64Var(&o.ImageSize, "image-size", o.ImageSize, "size of an image in MB")
			f.Int64Var(&o.PoolLimit, "pool-limit", o.PoolLimit, "MB of images that a node keeps for reservations, and again for best-effort work; 0 is no limit")
			f.IntVar(&o.Cache, "cache", o.Cache, "images that a node keeps in the experiment on reuse")
			f.Float64Var(&o.Slowdown, "slowdown", o.Slowdown, "slowdown of work in a virtual machine, as a share")
			f.Int64Var(&o.Overheads.Boot, "boot", o.Overheads.Boot, "duration of a boot in seconds")
			f.Int64Var(&o.Overheads.Shutdown, "shutdown", o.Overheads.Shutdown, "duration of a shutdown in seconds")
			f.Float64Var(&o.Overheads.SuspendRate, "suspend-rate", o.Overheads.SuspendRate, "MB/s of memory that a suspension writes; 0 is instantaneous")
			f.Float64Var(&o.Overheads.ResumeRate, "resume-rate", o.Overheads.ResumeRate, "MB/s of memory that a resumption reads; 0 is instantaneous")
			f.Int64Var(&o.ReservationLength, "reservation-length", o.ReservationLength, "mean duration of a reservation in the mixes, in seconds")
			f.IntVar(&o.Depth, "depth", o.Depth, "number of virtual machines at the head of the queue that the planner considers")
			f.Float64Var(&o.Measured.Rate, "measured-rate", o.Measured.Rate, "measured transfer rate of the thesis's testbed in MB/s (accuracy, reuse)")
			f.Float64Var(&o.Measured.Spread, "measured-spread", o.Measured.Spread, "standard deviation of the logarithm of a transfer time on the testbed")
			f.Float64Var(&o.Measured.Estimate, "estimated-rate", o.Measured.Estimate, "estimated transfer rate on the testbed in MB/s")
			f.Int64Var(&o.Measured.Extra, "estimated-extra", o.Measured.Extra, "estimated overhead of each image on the testbed in seconds")
			f.Float64Var(&o.Measured.Copy, "copy-rate", o.Measured.Copy, "MB/s that a node of the testbed copies from its cache; 0 is instantaneous")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with different random numbers")
			f.IntVar(&o.MixRuns, "mix-runs", o.MixRuns, "runs of each mix; the mixes take most of the time")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of all random numbers")
		},
		check: staging.Options.Check,
		run:   staging.Run,
	})
}
