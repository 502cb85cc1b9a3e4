// Package preemption repeats the evaluation of López García et al., "An efficient cloud
// scheduler design supporting preemptible instances" (FGCS 2019, paper 001) section 4 with the
// service's own scheduler, and does what the paper does not: it lets a cloud with preemptible
// instances run for weeks, once with each way to choose who has to leave.
package preemption

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Options say what is run.
type Options struct {
	// Seed of all random numbers, and Runs how many of each setting, with others.
	Seed uint64
	Runs int
	// Hosts is how many there are, of Host each. The zero Host is the paper's, or for a trace
	// one of 32 VCPUs with 256 GiB.
	Hosts int
	Host  resource.Vector
	// Days are simulated, the first WarmUp of which are not measured: the cloud is empty
	// when it begins.
	Days, WarmUp int
	// Load is how many VCPUs are asked for in the mean, as a share of those there are, by
	// preemptible and other instances together. A trace is thinned to it, but for a CSV file,
	// which is taken as it is.
	Load float64
	// Share is that of the requests that are preemptible. Shares are those of the figure
	// over shares; none leaves it out.
	Share  float64
	Shares []float64
	// Costs are which ways to choose who has to leave are compared: values of [preemptible]
	// cost. Period is the one that is charged for as a whole, in seconds.
	Costs  []string
	Period int64
	// Trace is the folder of the Azure traces (workload.OpenAzure) or a CSV file of virtual
	// machines (workload.CSVColumns). Empty makes machines up (workload.PaperVMs).
	Trace string
	// Latency has the times measured that it takes to schedule an instance, on hosts of each of
	// the LatencyHosts: Figure 2 of the paper. They come from Clock, and are others each time.
	Latency      bool
	LatencyHosts []int
	Clock        func() time.Time
}

// Defaults gives the options by default: hosts and flavors are the paper's, the rest is not.
func Defaults() Options {
	return Options{
		Seed: 1, Runs: 5, Hosts: 48, Days: 21, WarmUp: 2, Load: 1, Share: 0.4, Shares: []float64{0.2, 0.3, 0.4, 0.5, 0.6},
		Costs: slices.Clone(preemption.Costs), Period: hour, LatencyHosts: []int{4, 100, 1000, 10_000},
	}
}

// The most that can be asked for.
const (
	mostRuns  = 1000
	mostHosts = 100_000
	mostDays  = 3660
	mostLoad  = 100
	leastLoad = 0.001
	mostOfAny = math.MaxInt32 // what Placement can count
)

// Check refuses what cannot be run, with a fault that names the option.
func (o Options) Check() error {
	for _, err := range []error{
		within("runs", o.Runs, 1, mostRuns), within("hosts", o.Hosts, 2, mostHosts), within("days", o.Days, 1, mostDays),
		within("period", o.Period, 1, mostOfAny), share("share", o.Share), o.checkHost(), o.checkCosts(), o.checkLatency(),
	} {
		if err != nil {
			return err
		}
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

func within[N int | int64](field string, n, least, most N) error {
	if n < least || n > most {
		return fault.Field(field, "is %d; it must be from %d to %d", n, least, most)
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
	for _, err := range []error{
		within("host_vcpus", h.VCPUs, 1, mostOfAny), within("host_memory_mb", h.MemoryMB, 1, mostOfAny), within("host_disk_gb", h.DiskGB, 0, mostOfAny),
	} {
		if err != nil {
			return err
		}
	}
	return nil
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
		if err := within("latency_hosts", n, 4, mostHosts); err != nil {
			return err
		}
	}
	return nil
}
