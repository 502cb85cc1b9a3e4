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
		short: "How many reservations each policy accepts, and how late they begin (paper 003)",
		long: `How many reservations each of the seven policies accepts, and how late they begin: figures
2 to 7 of Li et al., "Resource Availability-Aware Advance Reservation for Parallel Jobs
with Deadlines". Jobs come as the model of Lublin and Feitelson has them, each with a time
from which it may start and one by which it must be over; their sizes, how close they come
and how much freedom they leave are varied one by one.

The paper's size, which is the default, takes about a quarter of an hour on two processors.`,
		example: `  almanac simulate deadline --out deadline --jobs 1000 --runs 2
  almanac simulate deadline --out deadline --arrivals poisson --load 0.8`,
		options: deadline.Defaults(),
		flags: func(f *pflag.FlagSet, o *deadline.Options) {
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "hosts of the machine: a power of two from 32 on")
			f.IntVar(&o.Jobs, "jobs", o.Jobs, "jobs of each run")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with other random numbers")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what all random numbers follow from")
			f.StringVar(&o.Arrivals, "arrivals", o.Arrivals, "how jobs arrive: "+strings.Join([]string{deadline.Lublin, deadline.Poisson}, ", "))
			f.Float64Var(&o.Load, "load", o.Load, "share of the machine that is asked for at UMed 7; 0 is what the model comes to")
		},
		check: deadline.Options.Check,
		run:   deadline.Run,
	})
}
