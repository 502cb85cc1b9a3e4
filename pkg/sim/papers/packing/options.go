// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
)

// Options describe the simulation.
type Options struct {
	// Seed determines all random numbers.
	Seed uint64
	// Small, Large and Parallel are the numbers of instances for each specification of the small
	// set, of the large set, and of the large set with parallel jobs; 0 omits a set. The paper has
	// 10, 100 and 100.
	Small, Large, Parallel int
	// Changes is the number of changed workloads to which placements are adapted; 0 means none.
	Changes int
	// Solver solves the linear program of RRND and RRNZ on the small set. nil omits these two;
	// Missing is the reason.
	Solver  packing.Solver
	Missing error
	// Timings adds the run times of the algorithms, measured by Clock; they depend on the machine
	// and differ between executions.
	Timings bool
	Clock   func() time.Time
}

// Defaults returns the default options: the small set is as large as the paper's, the others are
// smaller.
func Defaults() Options { return Options{Seed: 1, Small: 10, Large: 10, Parallel: 10, Changes: 300} }

// mostInstances is the largest allowed number of instances for each specification.
const mostInstances = 1000

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	err := cmp.Or(
		fault.Within("small", o.Small, 1, mostInstances), fault.Within("large", o.Large, 0, mostInstances),
		fault.Within("parallel", o.Parallel, 0, mostInstances), fault.Within("changes", o.Changes, 0, mostInstances),
	)
	if err == nil && o.Timings && o.Clock == nil {
		return fault.Field("timings", "need a clock to measure with")
	}
	return err
}
