package packing

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
)

// Options say what is run.
type Options struct {
	// Seed of all random numbers.
	Seed uint64
	// Small, Large and Parallel are how many instances there are of each specification of
	// the small set, of the large one, and of the large one with parallel jobs; 0 leaves a
	// set out. The paper has 10, 100 and 100.
	Small, Large, Parallel int
	// Changes are how many changed workloads a placement is adapted to; 0 is none.
	Changes int
	// Solver is for RRND and RRNZ on the small set; nil leaves them out, and Missing says why.
	Solver  packing.Solver
	Missing error
	// Timings has the run times of the algorithms reported, by Clock: these are those of a
	// machine, and others each time.
	Timings bool
	Clock   func() time.Time
}

// Defaults gives the options by default: the small set as large as the paper's, the others
// smaller.
func Defaults() Options { return Options{Seed: 1, Small: 10, Large: 10, Parallel: 10, Changes: 300} }

// mostInstances is how many instances there may be of a specification.
const mostInstances = 1000

// Check refuses what cannot be run, with a fault that names the option.
func (o Options) Check() error {
	for _, one := range []struct {
		name     string
		n, least int
	}{{"small", o.Small, 1}, {"large", o.Large, 0}, {"parallel", o.Parallel, 0}, {"changes", o.Changes, 0}} {
		if one.n < one.least || one.n > mostInstances {
			return fault.Field(one.name, "is %d; it must be from %d to %d", one.n, one.least, mostInstances)
		}
	}
	if o.Timings && o.Clock == nil {
		return fault.Field("timings", "need a clock to measure with")
	}
	return nil
}
