// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"io"
	"math"
	"math/rand/v2"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Lublin is the workload model of U. Lublin and D. Feitelson, "The workload on parallel
// supercomputers: modeling the characteristics of rigid jobs", JPDC 63(11), 2003, with the
// constants of its authors' program m_lublin99. A job's arrival, size and run time are drawn in
// this order. The run time depends on the size; otherwise they are independent.
type Lublin struct {
	// Name becomes the User of the jobs.
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

// lublinKind is one kind of jobs, with the arrival time of its next job.
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

// LublinSizes are the sizes of jobs: one processor, or 2 to the power of a number from a two-stage
// uniform distribution, which is rounded to a whole number for some jobs.
type LublinSizes struct {
	// Serial is the share of the jobs that have one processor, and PowerOfTwo the share of those
	// whose sizes are rounded to a power of two. Other sizes may be powers of two by chance.
	Serial, PowerOfTwo float64
	// Low, Medium and High are binary logarithms of sizes. For a share of LowShare of the parallel
	// jobs the logarithm is uniform between Low and Medium, for the others between Medium and High.
	// A Low slightly below 1 makes jobs of two processors more frequent.
	Low, Medium, High float64
	LowShare          float64
}

// On returns the sizes for a machine with at least two processors: High is the whole machine, and
// Medium is High − 2.5, or Low if that is larger, as the authors of the model advise.
func (s LublinSizes) On(processors int) LublinSizes {
	s.High = math.Log2(float64(processors))
	s.Medium = max(s.High-2.5, s.Low)
	return s
}

// largest is the binary logarithm of the largest size, so that sizes fit every int.
const largest = 30

// check returns an Invalid fault if a parameter is out of range.
func (s LublinSizes) check() error {
	for _, c := range []error{share("serial", s.Serial), share("power_of_two", s.PowerOfTwo), share("low_share", s.LowShare)} {
		if c != nil {
			return c
		}
	}
	if s.Serial+s.PowerOfTwo > 1 {
		return fault.Field("power_of_two", "is %v, and serial %v; together they must be at most 1", s.PowerOfTwo, s.Serial)
	}
	if !(s.Low >= 0 && s.Low <= s.Medium && s.Medium <= s.High && s.High <= largest) {
		return fault.Field("medium", "low, medium and high are %v, %v and %v; they must rise, from 0 to %d", s.Low, s.Medium, s.High, largest)
	}
	return nil
}

// Draw returns the size of a job, at most two to the power of High.
func (s LublinSizes) Draw(chance *rand.Rand) int {
	kind := chance.Float64()
	if kind < s.Serial {
		return 1
	}
	power := s.Power(chance.Float64(), chance.Float64())
	if kind < s.Serial+s.PowerOfTwo {
		power = math.Round(power)
	}
	return int(math.Round(math.Exp2(min(power, s.High))))
}

// Power returns a number of the two-stage uniform distribution, computed from two uniform numbers
// between 0 and 1: one selects the stage, the other the position in it.
func (s LublinSizes) Power(stage, place float64) float64 {
	if stage < s.LowShare {
		return s.Low + place*(s.Medium-s.Low)
	}
	return s.Medium + place*(s.High-s.Medium)
}

// PowerCDF returns the probability that Power is at most x.
func (s LublinSizes) PowerCDF(x float64) float64 {
	return s.LowShare*uniformCDF(x, s.Low, s.Medium) + (1-s.LowShare)*uniformCDF(x, s.Medium, s.High)
}

// uniformCDF returns the probability that a number drawn uniformly between from and to is at most x.
func uniformCDF(x, from, to float64) float64 {
	switch {
	case x >= to:
		return 1
	case x <= from:
		return 0
	}
	return (x - from) / (to - from)
}

// LublinRuntimes are run times whose natural logarithm, in seconds, has a hyper-gamma distribution:
// each is drawn from one of two gamma distributions; for larger jobs more often from the second,
// whose run times are long. A run time of more than two days is drawn again.
type LublinRuntimes struct {
	Shape1, Scale1 float64
	Shape2, Scale2 float64
	// Share + PerNode × size, limited to 0 … 1, is the probability of the first distribution.
	PerNode, Share float64
}

// longest is the logarithm of the longest run time: 162,754 seconds.
const longest = 12

// seldom is the smallest probability of a value below the bound for which a distribution is
// accepted, because draws are repeated until a value is below it.
const seldom = 0.01

// check returns an Invalid fault if a parameter is out of range.
func (t LublinRuntimes) check() error {
	for _, c := range []error{
		positive("shape_1", t.Shape1), positive("scale_1", t.Scale1),
		positive("shape_2", t.Shape2), positive("scale_2", t.Scale2),
	} {
		if c != nil {
			return c
		}
	}
	for _, c := range []error{soon("scale_1", t.Shape1, t.Scale1, longest), soon("scale_2", t.Shape2, t.Scale2, longest)} {
		if c != nil {
			return c
		}
	}
	if math.IsNaN(t.PerNode+t.Share) || math.IsInf(t.PerNode+t.Share, 0) {
		return fault.Field("per_node", "per_node and share are %v and %v; they must be numbers", t.PerNode, t.Share)
	}
	return nil
}

// soon returns an Invalid fault if a gamma distribution, of the logarithm of a time, has values
// below the bound too seldom.
func soon(field string, shape, scale, bound float64) error {
	if g := gamma(shape, scale, nil); g.CDF(bound) < seldom {
		return fault.Field(field, "results in times of e^%.3g s; they must be less than e^%v s", g.Mean(), bound)
	}
	return nil
}

// gamma returns the gamma distribution with a shape and a scale; distuv expects the inverse of the
// scale.
func gamma(shape, scale float64, chance *rand.Rand) distuv.Gamma {
	return distuv.Gamma{Alpha: shape, Beta: 1 / scale, Src: chance}
}

// First returns the probability that the run time of a job of a size is from the first
// distribution.
func (t LublinRuntimes) First(nodes float64) float64 {
	return min(max(t.PerNode*nodes+t.Share, 0), 1)
}

// Draw returns the run time of a job of a size, in seconds.
func (t LublinRuntimes) Draw(chance *rand.Rand, size int) int64 {
	first := t.First(float64(size))
	for {
		g := gamma(t.Shape2, t.Scale2, chance)
		if chance.Float64() < first {
			g = gamma(t.Shape1, t.Scale1, chance)
		}
		if x := g.Rand(); x <= longest {
			return int64(math.Exp(x))
		}
	}
}

// CDF returns the probability that a job of a size runs for at most a number of seconds, before
// rounding down to whole seconds. The size may be a fraction if sizes are scaled.
func (t LublinRuntimes) CDF(seconds, nodes float64) float64 {
	if seconds <= 1 {
		return 0
	}
	return min(t.hyperGamma(math.Log(seconds), nodes)/t.hyperGamma(longest, nodes), 1)
}

// hyperGamma returns the probability that the logarithm of a run time is at most x, without the
// bound.
func (t LublinRuntimes) hyperGamma(x, nodes float64) float64 {
	first := t.First(nodes)
	return first*gamma(t.Shape1, t.Scale1, nil).CDF(x) + (1-first)*gamma(t.Shape2, t.Scale2, nil).CDF(x)
}
