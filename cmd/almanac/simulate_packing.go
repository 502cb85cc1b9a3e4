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
		short: "Compare the fairness of the packing algorithms (paper 002)",
		long: `Compare the fairness of the packing algorithms: tables 1 and 2 and figures 2 to 22 of
Stillwell et al., "Resource allocation using virtual clusters", on instances that are
generated as in the paper; and the distance from the optimum of placements that are
adapted within a budget.

RRND and RRNZ require glpsol, which on Debian is in the package glpk-utils. With
--timings the report has the run times too: they are measured on this machine and differ
each time.`,
		example: `  almanac simulate packing --out packing
  almanac simulate packing --out packing --large 100 --parallel 100 --timings`,
		options: o,
		flags: func(f *pflag.FlagSet, o *packing.Options) {
			f.IntVar(&o.Small, "small", o.Small, "instances of each of the 144 specifications of the small set; the paper has 10")
			f.IntVar(&o.Large, "large", o.Large, "instances of each of the 108 specifications of the large set; the paper has 100")
			f.IntVar(&o.Parallel, "parallel", o.Parallel, "the same with parallel jobs; the paper has 100")
			f.IntVar(&o.Changes, "changes", o.Changes, "number of changed workloads for the adaptation")
			f.BoolVar(&o.Timings, "timings", o.Timings, "report the run times of the algorithms too")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of all random numbers")
		},
		check: packing.Options.Check,
		run:   packing.Run,
	})
}
