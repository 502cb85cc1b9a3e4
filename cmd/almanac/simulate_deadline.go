package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/sim/deadline"
)

func (p *process) simulateDeadlineCommand() *cobra.Command {
	return simulation(p, experiment[deadline.Options]{
		use:   "deadline",
		short: "Compare the acceptance and delay of the placement policies (paper 003)",
		long: `Compare the acceptance and delay of the seven placement policies: figures 2 to 7 of Li et
al., "Resource Availability-Aware Advance Reservation for Parallel Jobs with Deadlines".
Jobs come from the model of Lublin and Feitelson, each with an earliest start and a
deadline. The experiments vary their sizes, their arrival rate and their slack one by one.

The size of the paper, which is the default, takes about a quarter of an hour on two
processors.`,
		example: `  almanac simulate deadline --out deadline --jobs 1000 --runs 2
  almanac simulate deadline --out deadline --arrivals poisson --load 0.8`,
		options: deadline.Defaults(),
		flags: func(f *pflag.FlagSet, o *deadline.Options) {
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "hosts of the machine: a power of two, at least 32")
			f.IntVar(&o.Jobs, "jobs", o.Jobs, "jobs of each run")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with different random numbers")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of all random numbers")
			f.StringVar(&o.Arrivals, "arrivals", o.Arrivals, "arrival process of the jobs: "+strings.Join([]string{deadline.Lublin, deadline.Poisson}, ", "))
			f.Float64Var(&o.Load, "load", o.Load, "requested share of the machine at UMed 7; 0 is the share of the model")
		},
		check: deadline.Options.Check,
		run:   deadline.Run,
	})
}
