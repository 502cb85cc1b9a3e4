package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/sim/preemption"
)

func (p *process) simulatePreemptionCommand() *cobra.Command {
	o := preemption.Defaults()
	o.Clock = p.now
	return simulation(p, experiment[preemption.Options]{
		use:   "preemption",
		short: "What preemptible instances fill, and what making room costs (paper 001)",
		long: `What preemptible instances fill, and what it costs to let them make room: the snapshots of
López García et al., "An efficient cloud scheduler design supporting preemptible
instances", and weeks of a cloud, once with each of the ways to choose who has to leave.
With --latency also the paper's figure 2, the time that it takes to schedule an instance:
that is a measurement of this machine, and differs each time.

Without --trace the instances are made up: the paper's three sizes, more by day than by night.`,
		example: `  almanac simulate preemption --out preemption --days 7 --runs 2
  almanac simulate preemption --out preemption --trace azure/ --hosts 200 --costs partial_hour,age`,
		options: o,
		flags: func(f *pflag.FlagSet, o *preemption.Options) {
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "hosts of the cloud")
			f.Int64Var(&o.Host.VCPUs, "host-vcpus", o.Host.VCPUs, "VCPUs of a host; 0 is as in the paper, or for a trace 32 with 256 GiB")
			f.Int64Var(&o.Host.MemoryMB, "host-memory-mb", o.Host.MemoryMB, "memory of a host in MiB")
			f.Int64Var(&o.Host.DiskGB, "host-disk-gb", o.Host.DiskGB, "disk of a host in GiB")
			f.IntVar(&o.Days, "days", o.Days, "days that are simulated")
			f.IntVar(&o.WarmUp, "warm-up", o.WarmUp, "days of these, the first, that are not measured")
			f.Float64Var(&o.Load, "load", o.Load, "VCPUs asked for in the mean, as a share of those there are")
			f.Float64Var(&o.Share, "share", o.Share, "share of the requests that are preemptible")
			f.Float64SliceVar(&o.Shares, "shares", o.Shares, "shares that are compared in a figure")
			f.StringSliceVar(&o.Costs, "costs", o.Costs, "what victims cost, side by side: "+strings.Join(o.Costs, ", "))
			f.Var((*period)(&o.Period), "period", "what is charged for as a whole")
			f.StringVar(&o.Trace, "trace", o.Trace, "folder of the Azure traces, or CSV file of virtual machines")
			f.BoolVar(&o.Latency, "latency", o.Latency, "measure how long scheduling takes, too")
			f.IntSliceVar(&o.LatencyHosts, "latency-hosts", o.LatencyHosts, "on how many hosts that is measured")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with other random numbers")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "what all random numbers follow from")
		},
		check: preemption.Options.Check,
		run:   preemption.Run,
	})
}
