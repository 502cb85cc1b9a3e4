package workload

import (
	"math"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// LublinSizes are the sizes of jobs: one processor, or two to the power of a number from a
// two-stage uniform distribution, which is rounded for some jobs.
type LublinSizes struct {
	// Serial and PowerOfTwo are the shares of the jobs on one processor and of the jobs that
	// are rounded to a power of two. Other sizes may be powers of two by chance.
	Serial, PowerOfTwo float64
	// Low, Medium and High are binary logarithms of sizes. LowShare of the parallel jobs are
	// uniform from Low to Medium, the others from Medium to High. A Low slightly below 1 makes
	// pairs more likely.
	Low, Medium, High float64
	LowShare          float64
}

// On returns sizes for a machine with at least two processors: High is the whole machine, and
// Medium is 2.5 below it or Low, as the authors of the model advise.
func (s LublinSizes) On(processors int) LublinSizes {
	s.High = math.Log2(float64(processors))
	s.Medium = max(s.High-2.5, s.Low)
	return s
}

// largest is the binary logarithm of the largest size, so that sizes fit every int.
const largest = 30

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

// Power returns a number of the two-stage uniform distribution from two uniform numbers between
// 0 and 1: the stage, and the position in it.
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

func uniformCDF(x, from, to float64) float64 {
	switch {
	case x >= to:
		return 1
	case x <= from:
		return 0
	}
	return (x - from) / (to - from)
}
