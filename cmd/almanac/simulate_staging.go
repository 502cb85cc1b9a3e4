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
		short: "Whether images are there in time, and what best-effort work gets (paper 000)",
		long: `Whether the images of reservations are there when they start, what disk that takes, what
using images again saves, and how long best-effort work takes beside reservations: the
experiments of Sotomayor's thesis, of which paper 000 is a chapter, each held against the
numbers that it prints. All 36 mixtures of reservations and best-effort work are run.

The thesis has no overheads but the slowdown. Those of Haizea (HPDC 2008) are --slowdown
0.05 --boot 10 --shutdown 10 --suspend-rate 50 --resume-rate 50.`,
		example: `  almanac simulate staging --out staging
  almanac simulate staging --out staging --experiment accuracy --experiment disk --runs 50
  almanac simulate staging --out staging --experiment mixes --rate 125 --image-size 5000`,
		options: staging.Defaults(),
		flags: func(f *pflag.FlagSet, o *staging.Options) {
			f.StringSliceVar(&o.Experiments, "experiment", o.Experiments, "what is run, one or several: "+strings.Join(staging.Experiments, ", "))
			f.IntVar(&o.Nodes, "nodes", o.Nodes, "nodes")
			f.IntVar(&o.CPUs, "cpus", o.CPUs, "CPUs of a node; a virtual machine takes one")
			f.Float64Var(&o.Rate, "rate", o.Rate, "MB a second that reservations get from the repository, and best-effort work as many")
			f.Int64Var(&o.ImageSize, "image-size", o.ImageSize, "MB of an image")
			f.Int64Var(&o.PoolLimit, "pool-limit", o.PoolLimit, "MB of images that a node keeps for reservations, and as many for best-effort work; 0 is no limit")
			f.IntVar(&o.Cache, "cache", o.Cache, "images that a node keeps in the experiment on reuse")
			f.Float64Var(&o.Slowdown, "slowdown", o.Slowdown, "share by which work takes longer in a virtual machine")
			f.Int64Var(&o.Overheads.Boot, "boot", o.Overheads.Boot, "seconds of a boot")
			f.Int64Var(&o.Overheads.Shutdown, "shutdown", o.Overheads.Shutdown, "seconds of a shutdown")
			f.Float64Var(&o.Overheads.SuspendRate, "suspend-rate", o.Overheads.SuspendRate, "MB of memory a second that a suspension writes; 0 is at once")
			f.Float64Var(&o.Overheads.ResumeRate, "resume-rate", o.Overheads.ResumeRate, "MB of memory a second that a resumption reads; 0 is at once")
			f.Int64Var(&o.ReservationLength, "reservation-length", o.ReservationLength, "seconds of a reservation of the mixes, in the mean")
			f.IntVar(&o.Depth, "depth", o.Depth, "virtual machines at the head of the queue that the planner is shown")
			f.Float64Var(&o.Measured.Rate, "measured-rate", o.Measured.Rate, "MB a second that come through on the testbed of the thesis (accuracy, reuse)")
			f.Float64Var(&o.Measured.Spread, "measured-spread", o.Measured.Spread, "how much a transfer's time varies there: the deviation of its logarithm")
			f.Float64Var(&o.Measured.Estimate, "estimated-rate", o.Measured.Estimate, "MB a second by which transfers are reckoned there")
			f.Int64Var(&o.Measured.Extra, "estimated-extra", o.Measured.Extra, "seconds that are added to each image there")
			f.Float64Var(&o.Measured.Copy, "copy-rate", o.Measured.Copy, "MB a second that a node copies from its cache there; 0 is at once")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with other random numbers")
			f.IntVar(&o.MixRuns, "mix-runs", o.MixRuns, "runs of each mix, which take most of the time")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what all random numbers follow from")
		},
		check: staging.Options.Check,
		run:   staging.Run,
	})
}
