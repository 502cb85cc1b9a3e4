// SPDX-License-Identifier: Apache-2.0

// Package preemption repeats the evaluation of López García et al., "An efficient cloud scheduler
// design supporting preemptible instances" (FGCS 2019, paper 001) section 4, with the service's own
// scheduler. Beyond the paper, it simulates weeks of a cloud with preemptible instances, once with
// each way to choose victims.
package preemption

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Options describe the simulation.
type Options struct {
	// Seed determines all random numbers. Runs is the number of runs of each setting, each with
	// different random numbers.
	Seed uint64
	Runs int
	// Hosts is the number of hosts, each with the capacity Host. The zero Host means the paper's
	// host or, for an Azure trace, one of 32 VCPUs with 256 GiB.
	Hosts int
	Host  resource.Vector
	// Days is the number of simulated days. The first WarmUp of them are not measured, since the
	// cloud is empty at the beginning.
	Days, WarmUp int
	// Load is the mean demand for VCPUs by all instances, preemptible or not, as a share of all
	// VCPUs. An Azure trace is thinned to it; a CSV file is used unchanged.
	Load float64
	// Share is the share of the requests that are preemptible. Shares are those that the figure
	// over shares has in addition; an empty list omits the figure.
	Share  float64
	Shares []float64
	// Costs are the compared ways to choose victims: values of [preemptible] victim_cost. Period is the
	// interval that is charged as a whole, in seconds.
	Costs  []string
	Period int64
	// Trace is the folder of the Azure traces (workload.OpenAzure) or a CSV file of virtual
	// machines (workload.CSVColumns). If it is empty, machines are generated (workload.PaperVMs).
	Trace string
	// Latency adds the measurement of Figure 2 of the paper: the time to schedule an instance with
	// each number of hosts of LatencyHosts. Clock measures the times, which differ between
	// executions.
	Latency      bool
	LatencyHosts []int
	Clock        func() time.Time
}

// Defaults returns the default options: hosts and flavors are the paper's, the rest is not.
func Defaults() Options {
	return Options{
		Seed: 1, Runs: 5, Hosts: 48, Days: 21, WarmUp: 2, Load: 1, Share: 0.4, Shares: []float64{0.2, 0.3, 0.4, 0.5, 0.6},
		Costs: slices.Clone(preemption.Costs), Period: hour, LatencyHosts: []int{4, 100, 1000, 10_000},
	}
}

// The limits of the options.
const (
	mostRuns  = 1000
	mostHosts = 100_000
	mostDays  = 3660
	mostLoad  = 100
	leastLoad = 0.001
	mostOfAny = math.MaxInt32 // the most that Placement can count
)

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	err := cmp.Or(
		fault.Within("runs", o.Runs, 1, mostRuns), fault.Within("hosts", o.Hosts, 2, mostHosts), fault.Within("days", o.Days, 1, mostDays),
		fault.Within("period", o.Period, 1, mostOfAny), share("share", o.Share), o.checkHost(), o.checkCosts(), o.checkLatency(),
	)
	if err != nil {
		return err
	}
	for _, s := range o.Shares {
		if err := share("shares", s); err != nil {
			return err
		}
	}
	switch {
	case o.WarmUp < 0 || o.WarmUp >= o.Days:
		return fault.Field("warm_up", "is %d days; it must be less than the %d that are simulated, so that some are measured", o.WarmUp, o.Days)
	case !(o.Load >= leastLoad && o.Load <= mostLoad):
		return fault.Field("load", "is %v; it must be from %v to %d", o.Load, leastLoad, mostLoad)
	}
	return nil
}

func share(field string, s float64) error {
	if !(s >= 0 && s <= 1) {
		return fault.Field(field, "has %v; a share is from 0 to 1", s)
	}
	return nil
}

func (o Options) checkHost() error {
	h := o.Host
	if h.IsZero() {
		return nil
	}
	if len(h.Custom) > 0 {
		return fault.Field("host", "has %v; it may have VCPUs, memory and disk only", h)
	}
	return cmp.Or(
		fault.Within("host_vcpus", h.VCPUs, 1, mostOfAny), fault.Within("host_memory_mb", h.MemoryMB, 1, mostOfAny),
		fault.Within("host_disk_gb", h.DiskGB, 0, mostOfAny),
	)
}

func (o Options) checkCosts() error {
	if len(o.Costs) == 0 {
		return fault.Field("costs", "there is none to compare")
	}
	for i, name := range o.Costs {
		if !slices.Contains(preemption.Costs, name) {
			return fault.Field("costs", "%s; the costs are %s", fault.Unknown("cost", name, preemption.Costs), strings.Join(preemption.Costs, ", "))
		}
		if slices.Contains(o.Costs[:i], name) {
			return fault.Field("costs", "%s is there twice", strconv.Quote(name))
		}
	}
	return nil
}

func (o Options) checkLatency() error {
	if !o.Latency {
		return nil
	}
	if o.Clock == nil {
		return fault.Field("latency", "needs a clock to measure with")
	}
	if len(o.LatencyHosts) == 0 {
		return fault.Field("latency_hosts", "there is no number of hosts to measure with")
	}
	for _, n := range o.LatencyHosts {
		if err := fault.Within("latency_hosts", n, 4, mostHosts); err != nil {
			return err
		}
	}
	return nil
}
