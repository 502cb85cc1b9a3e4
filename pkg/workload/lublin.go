package workload

import (
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Lublin is the workload model of U. Lublin and D. Feitelson, "The workload on parallel
// supercomputers: modeling the characteristics of rigid jobs", JPDC 63(11), 2003, with the
// constants of its authors' program m_lublin99. A job's arrival, size and run time are drawn
// in this order; the run time depends on the size, nothing else does.
type Lublin struct {
	// Name is the User of the jobs.
	Name     string
	Arrivals LublinArrivals
	Sizes    LublinSizes
	Runtimes LublinRuntimes
}

// Typeless returns the constants for all jobs of a machine with 128 processors.
func Typeless() Lublin {
	return Lublin{
		Arrivals: LublinArrivals{Shape: 10.2303, Scale: 0.4871, DayShape: 8.1737, DayScale: 3.9631, RushToAll: 1.0225},
		Sizes:    LublinSizes{Serial: 0.244, PowerOfTwo: 0.576, Low: 0.8, Medium: 4.5, High: 7, LowShare: 0.86},
		Runtimes: LublinRuntimes{Shape1: 4.2, Scale1: 0.94, Shape2: 312, Scale2: 0.03, PerNode: -0.0054, Share: 0.78},
	}
}

// Check returns an Invalid fault, with the name of the constant, for impossible constants.
func (l Lublin) Check() error {
	for _, check := range []func() error{l.Arrivals.check, l.Sizes.check, l.Runtimes.check} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// positive returns an Invalid fault unless a constant is a positive number.
func positive(field string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fault.Field(field, "is %v; it must be positive", v)
	}
	return nil
}

// share returns an Invalid fault unless a constant is from 0 to 1.
func share(field string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return fault.Field(field, "is %v; it must be from 0 to 1", v)
	}
	return nil
}

// LublinJobs is a Stream of generated jobs.
type LublinJobs struct {
	chance *rand.Rand
	kinds  []lublinKind
	made   int
	jobs   int
}

// lublinKind is one kind of jobs, with the arrival of the next one.
type lublinKind struct {
	Lublin
	arrivals *LublinProcess
	next     float64
}

// NewLublin returns a stream of jobs, at most as many as jobs, that starts at midnight. Each of
// several kinds, such as batch and interactive jobs, has its own arrivals; the next job is the
// one that arrives first.
func NewLublin(chance *rand.Rand, jobs int, kinds ...Lublin) (*LublinJobs, error) {
	if len(kinds) == 0 {
		return nil, fault.Field("kinds", "there is no kind of jobs")
	}
	s := &LublinJobs{chance: chance, jobs: jobs}
	for _, kind := range kinds {
		if err := kind.Check(); err != nil {
			return nil, err
		}
		k := lublinKind{Lublin: kind, arrivals: kind.Arrivals.Process(chance)}
		k.next = k.arrivals.Next()
		s.kinds = append(s.kinds, k)
	}
	return s, nil
}

// Next returns the next job.
func (s *LublinJobs) Next() (Job, error) {
	if s.made >= s.jobs {
		return Job{}, io.EOF
	}
	s.made++
	first := &s.kinds[0]
	for i := range s.kinds[1:] {
		if s.kinds[i+1].next < first.next {
			first = &s.kinds[i+1]
		}
	}
	j := Job{ID: strconv.Itoa(s.made), Submit: int64(first.next), Waited: -1, User: first.Name}
	first.next = first.arrivals.Next()
	j.Size = first.Sizes.Draw(s.chance)
	j.Runtime = first.Runtimes.Draw(s.chance, j.Size)
	return j, nil
}
