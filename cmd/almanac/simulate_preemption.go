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
		short: "Measure the utilization and cost of preemptible instances (paper 001)",
		long: `Measure the utilization and cost of preemptible instances: the snapshots of López García
et al., "An efficient cloud scheduler design supporting preemptible instances", and weeks
of a cloud, with each of the rules that choose victims. With --latency also the paper's
figure 2, the time to schedule an instance: it is measured on this machine and differs
each time.

Without --trace the instances are generated: the paper's three sizes, more by day than by
night.`,
		example: `  almanac simulate preemption --out preemption --days 7 --runs 2
  almanac simulate preemption --out preemption --trace azure/ --hosts 200 --costs partial_hour,age`,
		options: o,
		flags: func(f *pflag.FlagSet, o *preemption.Options) {
			f.IntVar(&o.Hosts, "hosts", o.Hosts, "hosts of the cloud")
			f.Int64Var(&o.Host.VCPUs, "host-vcpus", o.Host.VCPUs, "VCPUs of a host; 0 is the host of the paper, or for a trace 32 VCPUs with 256 GiB")
			f.Int64Var(&o.Host.MemoryMB, "host-memory-mb", o.Host.MemoryMB, "memory of a host in MiB")
			f.Int64Var(&o.Host.DiskGB, "host-disk-gb", o.Host.DiskGB, "disk of a host in GiB")
			f.IntVar(&o.Days, "days", o.Days, "days to simulate")
			f.IntVar(&o.WarmUp, "warm-up", o.WarmUp, "number of first days that are not measured")
			f.Float64Var(&o.Load, "load", o.Load, "mean of the requested VCPUs, as a share of all VCPUs")
			f.Float64Var(&o.Share, "share", o.Share, "share of the requests that are preemptible")
			f.Float64SliceVar(&o.Shares, "shares", o.Shares, "shares to compare in a figure")
			f.StringSliceVar(&o.Costs, "costs", o.Costs, "victim costs to compare: "+strings.Join(o.Costs, ", "))
			f.Var((*period)(&o.Period), "period", "charging period")
			f.StringVar(&o.Trace, "trace", o.Trace, "folder of the Azure traces, or CSV file of virtual machines")
			f.BoolVar(&o.Latency, "latency", o.Latency, "measure the scheduling time too")
			f.IntSliceVar(&o.LatencyHosts, "latency-hosts", o.LatencyHosts, "numbers of hosts for --latency")
			f.IntVar(&o.Runs, "runs", o.Runs, "runs of each setting, with different random numbers")
			f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of all random numbers")
		},
		check: preemption.Options.Check,
		run:   preemption.Run,
	})
}
