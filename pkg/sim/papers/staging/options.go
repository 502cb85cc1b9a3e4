// SPDX-License-Identifier: Apache-2.0

// Package staging repeats the experiments of paper 000 and of the thesis that followed it
// (Sotomayor, "A Resource Management Model for VM-Based Virtual Workspaces", University of Chicago
// 2007, section 8) with the service's own code for booking, image transfers and best-effort plans.
// The experiments measure which share of their time reservations can use when their images must
// arrive first, the disk space that images take, the savings of image reuse, and the cost of mixing
// reservations with best-effort work.
package staging

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// The experiments.
const (
	Accuracy = "accuracy" // figures 8.2 and 8.3
	Disk     = "disk"     // figure 8.4
	Reuse    = "reuse"    // figures 8.6 and 8.7
	Mixes    = "mixes"    // tables 4.1, 4.2 and 8.3 to 8.7
)

// Experiments lists all experiments, in the order of the report.
var Experiments = []string{Accuracy, Disk, Reuse, Mixes}

// Options describe the simulation. Sizes are in MB of a million bytes, times in seconds.
type Options struct {
	Experiments []string
	Seed        uint64
	Runs        int // of each setting, with other random numbers
	MixRuns     int // of each mix and setup, which take most of the time

	Nodes     int
	CPUs      int     // of a node; a virtual machine takes one
	Rate      float64 // MB a second that the repository sends
	ImageSize int64
	// PoolLimit bounds the size of the images on a node; 0 means no bound, as in the thesis.
	PoolLimit int64
	// Slowdown is the share that is added to the duration of work in a virtual machine.
	Slowdown float64
	// Overheads are the durations of suspension, boot and shutdown. The thesis has none.
	Overheads besteffort.Overheads
	// ReservationLength is the mean length of a reservation of the mixes.
	ReservationLength int64

	// Depth is the number of waiting virtual machines that the planner considers, from the head of
	// the queue; others follow as these end. The run time of the planner is proportional to it.
	Depth int
	// Cache is the number of images that a node keeps in the reuse experiment.
	Cache int

	// Measured describes transfers on the thesis' testbed, on which Accuracy and Reuse were
	// measured; the thesis simulated the other experiments.
	Measured Measured
}

// Measured is how real transfers differ from their estimates.
type Measured struct {
	Rate     float64 // median MB a second
	Spread   float64 // standard deviation of the logarithm of a transfer's time
	Estimate float64 // MB a second in the planner's estimate
	Extra    int64   // seconds that the planner adds for each image
	// Copy is how many MB a second a node copies from its cache; 0 means that copies take no time.
	Copy float64
}

// Defaults returns the options of the thesis, where it states them. The length of reservations
// follows from its 830 and 1,876 images. The measured rate follows from figure 8.2: reservations of
// two to four images whose transfers begin at their start lose 63 s for each image. The estimate
// comes from the program that generated its traces (github.com/borjasotomayor/haizea, 8f3c084,
// traces/cooker.py). The spread and the rate of copies are assumptions.
func Defaults() Options {
	return Options{
		Experiments: slices.Clone(Experiments), Seed: 1, Runs: 10, MixRuns: 3,
		Nodes: 8, CPUs: 2, Rate: 12.5, ImageSize: 600, Slowdown: 0.1, ReservationLength: 420, Depth: 32, Cache: 3,
		Measured: Measured{Rate: 9.5, Spread: 0.2, Estimate: 10, Extra: 10, Copy: 10},
	}
}

// The bounds of the options.
const (
	mostRuns   = 1000
	mostNodes  = 1 << 12
	mostCPUs   = 1 << 10
	mostSize   = 1 << 30
	mostRate   = 1e9
	mostLength = 36000
	mostTime   = 86400
)

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	if len(o.Experiments) == 0 {
		return fault.Field("experiment", "must name one at least: %v", Experiments)
	}
	for _, e := range o.Experiments {
		if !slices.Contains(Experiments, e) {
			return fault.Field("experiment", "%s", fault.Unknown("experiment", e, Experiments))
		}
	}
	err := cmp.Or(
		fault.Within("runs", o.Runs, 1, mostRuns), fault.Within("mix_runs", o.MixRuns, 1, mostRuns), fault.Within("nodes", o.Nodes, 1, mostNodes), fault.Within("cpus", o.CPUs, 1, mostCPUs),
		fault.Within("image_size", o.ImageSize, 1, mostSize), fault.Within("pool_limit", o.PoolLimit, 0, mostSize),
		fault.Within("rate", o.Rate, 0.001, mostRate), fault.Within("slowdown", o.Slowdown, 0, 10),
		fault.Within("cache", o.Cache, 1, mostCPUs), fault.Within("depth", o.Depth, 1, mostSize), fault.Within("reservation_length", o.ReservationLength, 60, mostLength),
		fault.Within("measured_rate", o.Measured.Rate, 0.001, mostRate), fault.Within("measured_spread", o.Measured.Spread, 0, 2),
		fault.Within("estimated_rate", o.Measured.Estimate, 0.001, mostRate), fault.Within("copy_rate", o.Measured.Copy, 0, mostRate), fault.Within("estimated_extra", o.Measured.Extra, 0, mostTime),
		fault.Within("boot", o.Overheads.Boot, 0, mostTime), fault.Within("shutdown", o.Overheads.Shutdown, 0, mostTime),
		fault.Within("suspend_rate", o.Overheads.SuspendRate, 0, mostSize), fault.Within("resume_rate", o.Overheads.ResumeRate, 0, mostSize),
	)
	return cmp.Or(err, o.checkMachine())
}

// checkMachine returns a fault if the requests of the thesis do not fit on the machine.
func (o *Options) checkMachine() error {
	const widths = 4 // of the mixes' reservations
	switch slots := o.slots(); {
	case slots < widths:
		return fault.Field("nodes", "are %d with %d CPUs; the experiments need %d CPUs together", o.Nodes, o.CPUs, widths)
	case o.PoolLimit > 0 && o.PoolLimit < o.ImageSize:
		return fault.Field("pool_limit", "is %d MB; no image of %d MB would have room", o.PoolLimit, o.ImageSize)
	case o.transfer() > mostLength:
		return fault.Field("rate", "is %v MB/s; an image of %d MB must come within %d s", o.Rate, o.ImageSize, mostLength)
	}
	return nil
}

// has reports whether an experiment is selected.
func (o *Options) has(experiment string) bool { return slices.Contains(o.Experiments, experiment) }

// slots returns how many virtual machines can run at once.
func (o *Options) slots() int { return o.Nodes * o.CPUs }

// transfer returns how many seconds the transfer of an image takes in simulations.
func (o *Options) transfer() int64 { return int64(math.Ceil(float64(o.ImageSize) / o.Rate)) }

// vmMemoryMB is the memory of a virtual machine, as in the thesis.
const vmMemoryMB = 512

// shape returns the resources of a virtual machine.
func shape() resource.Vector { return resource.Vector{VCPUs: 1, MemoryMB: vmMemoryMB} }

// capacity returns the resources of a node.
func (o *Options) capacity() resource.Vector { return shape().Scale(int64(o.CPUs)) }

const megabyte = 1_000_000
