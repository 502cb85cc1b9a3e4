package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// LublinRuntimes are run times whose natural logarithm, in seconds, has a hyper-gamma
// distribution: each comes from one of two gamma distributions, for larger jobs more often from
// the second, of long run times. A run time of more than two days is drawn again.
type LublinRuntimes struct {
	Shape1, Scale1 float64
	Shape2, Scale2 float64
	// Share + PerNode × size, limited to 0 … 1, is the probability of the first distribution.
	PerNode, Share float64
}

// longest is the logarithm of the longest run time: 162,754 seconds.
const longest = 12

// seldom is the smallest share of a distribution below its bound with which the repeated draws
// end.
const seldom = 0.01

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

// soon returns an Invalid fault for a gamma distribution, of the logarithm of a time, that is
// too seldom below a bound.
func soon(field string, shape, scale, bound float64) error {
	if g := gamma(shape, scale, nil); g.CDF(bound) < seldom {
		return fault.Field(field, "results in times of e^%.3g s; they must be less than e^%v s", g.Mean(), bound)
	}
	return nil
}

// gamma returns a gamma distribution by its scale; distuv uses the inverse.
func gamma(shape, scale float64, chance *rand.Rand) distuv.Gamma {
	return distuv.Gamma{Alpha: shape, Beta: 1 / scale, Src: chance}
}

// First returns the probability of the first distribution for a job of a size.
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

// hyperGamma is the distribution of the logarithm without the bound.
func (t LublinRuntimes) hyperGamma(x, nodes float64) float64 {
	first := t.First(nodes)
	return first*gamma(t.Shape1, t.Scale1, nil).CDF(x) + (1-first)*gamma(t.Shape2, t.Scale2, nil).CDF(x)
}
