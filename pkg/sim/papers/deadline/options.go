// SPDX-License-Identifier: Apache-2.0

// Package deadline repeats the evaluation of Li et al., "Resource Availability-Aware Advance
// Reservation for Parallel Jobs with Deadlines" (arXiv 1203.0740, paper 003) section 6 with the
// booking service: how many reservations each of the seven policies accepts, and how long after
// their ready time they begin.
package deadline

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The ways in which jobs arrive.
const (
	Lublin  = "lublin"
	Poisson = "poisson"
)

// Options describe the simulation.
type Options struct {
	// Hosts is the size of the machine: a power of two, 32 or more. The paper has 1,024; the sizes
	// of the jobs are in proportion to it.
	Hosts int
	// Jobs is how many jobs are submitted in each run.
	Jobs int
	// Runs is how many runs each setting has, with different random numbers.
	Runs int
	// Seed determines all random numbers.
	Seed uint64
	// Arrivals is Lublin, the Lublin-Feitelson model with its bursts and its daily cycle, as in the
	// paper; or Poisson.
	Arrivals string
	// Load is the share of the machine that would be busy if all jobs were accepted, at UMed 7 and
	// arrival factor 1. With 0 it follows from the constants of the Lublin-Feitelson model, for
	// both kinds of arrivals.
	Load float64
}

// Defaults returns the options of the paper, where it states them.
func Defaults() Options {
	return Options{Hosts: 1024, Jobs: 10_000, Runs: 5, Seed: 1, Arrivals: Lublin}
}

// The limits of the options: a run is kept in memory.
const (
	mostHosts = 1 << 16
	mostJobs  = 10_000_000
	mostRuns  = 1000
	mostLoad  = 100
	// leastLoad is the least load other than 0: below it, jobs arrive too rarely for a comparison.
	leastLoad = 0.001
)

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	bounds := cmp.Or(fault.Within("jobs", o.Jobs, 1, mostJobs), fault.Within("runs", o.Runs, 1, mostRuns))
	switch {
	case o.Hosts < smallest || o.Hosts > mostHosts || bits.OnesCount(uint(o.Hosts)) != 1:
		return fault.Field("hosts", "is %d; the sizes of the jobs need a power of two from %d to %d", o.Hosts, smallest, mostHosts)
	case bounds != nil:
		return bounds
	case o.Arrivals != Poisson && o.Arrivals != Lublin:
		known := []string{Lublin, Poisson}
		return fault.Field("arrivals", "%s; the kinds are %s", fault.Unknown("kind of arrivals", o.Arrivals, known), strings.Join(known, ", "))
	case o.Load != 0 && !(o.Load >= leastLoad && o.Load <= mostLoad):
		return fault.Field("load", "is %v; it must be from %v to %d, or 0 for what the model comes to", o.Load, leastLoad, mostLoad)
	}
	return nil
}
