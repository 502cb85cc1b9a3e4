package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/sim/packing"
)

func (p *process) simulatePackingCommand() *cobra.Command {
	o := packing.Defaults()
	tools := packingTools(time.Minute)
	o.Clock, o.Solver, o.Missing = p.now, tools.Solver, tools.Missing
	return simulation(p, experiment[packing.Options]{
		use:   "packing",
		short: "How fairly jobs share hosts, by algorithm (paper 002)",
		long: `How fairly jobs share hosts, by algorithm: tables 1 and 2 and figures 2 to 22 of Stillwell
et al., "Resource allocation using virtual clusters", on instances that are made up as the
paper says; and how near to the best a placement is adapted within a budget.

RRND and RRNZ are run where glpsol is, which on Debian is in the package glpk-utils. With
--timings also the run times are reported: that is a measurement of this machine, and
differs each time.`,
		example: `  almanac simulate packing --out packing
  almanac simulate packing --out packing --large 100 --parallel 100 --timings`,
		options: o,
		flags: func(f *pflag.FlagSet, o *packing.Options) {
			f.IntVar(&o.Small, "small", o.Small, "instances of each of the 144 specifications of the small set; the paper has 10")
			f.IntVar(&o.Large, "large", o.Large, "instances of each of the 108 specifications of the large set; the paper has 100")
			f.IntVar(&o.Parallel, "parallel", o.Parallel, "the same with parallel jobs; the paper has 100")
			f.IntVar(&o.Changes, "changes", o.Changes, "changed workloads that a placement is adapted to")
			f.BoolVar(&o.Timings, "timings", o.Timings, "report how long the algorithms take, too")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what all random numbers follow from")
		},
		check: packing.Options.Check,
		run:   packing.Run,
	})
}
