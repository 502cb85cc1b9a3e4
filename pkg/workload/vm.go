// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// VMModel generates virtual machines: they arrive by a Poisson process with a daily cycle, have
// one of a few flavors, and live for a log-normal time. It models no particular cloud.
type VMModel struct {
	// PerDay is the mean number of arrivals in a day. The rate varies over the day by the share
	// Swing of its mean, from 0 to 1: it is highest at Peak, in seconds after midnight, and lowest
	// half a day later.
	PerDay, Swing float64
	Peak          int64
	Flavors       []VMFlavor
	// Median is the median lifetime in seconds, and Spread the standard deviation of its logarithm.
	// Longest is the maximum lifetime in seconds.
	Median, Spread float64
	Longest        int64
	// Preemptible is the share of the machines that are preemptible.
	Preemptible float64
}

// VMFlavor is a shape. Its share of the machines is proportional to Weight.
type VMFlavor struct {
	Shape  resource.Vector
	Weight float64
}

// PaperVMs has the flavors of paper 001, Table 2. The other values are not in the paper: half of
// the machines are small, a third medium and a sixth large; the rate has its peak at two in the
// afternoon, three times the rate at two in the night; the median lifetime is two hours, the
// mean six hours, the maximum two weeks.
func PaperVMs() VMModel {
	const hour = 3600
	shape := func(n int64) resource.Vector {
		return resource.Vector{VCPUs: n, MemoryMB: 2000 * n, DiskGB: 20 * n}
	}
	return VMModel{
		PerDay: 1000, Swing: 0.5, Peak: 14 * hour, Flavors: []VMFlavor{{shape(1), 3}, {shape(2), 2}, {shape(4), 1}},
		Median: 2 * hour, Spread: 1.5, Longest: 14 * 24 * hour,
	}
}

// leastPerDay is the smallest PerDay: arrival times stay in the range of an int64.
const leastPerDay = 1e-6

// Check returns an Invalid fault, with the field, for an impossible model.
func (m VMModel) Check() error {
	for _, err := range []error{
		positive("per_day", m.PerDay), share("swing", m.Swing), positive("median", m.Median), share("preemptible", m.Preemptible),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case m.PerDay < leastPerDay:
		return fault.Field("per_day", "is %v; it must be at least %v", m.PerDay, leastPerDay)
	case !(m.Spread >= 0 && m.Spread <= 10):
		return fault.Field("spread", "is %v; it must be from 0 to 10", m.Spread)
	case m.Longest < 1 || m.Longest > mostTime:
		return fault.Field("longest", "is %d; it must be from 1 to %d seconds", m.Longest, int64(mostTime))
	case len(m.Flavors) == 0:
		return fault.Field("flavors", "there is no flavor")
	}
	for _, f := range m.Flavors {
		if err := positive("flavors", f.Weight); err != nil {
			return err
		}
		if f.Shape.VCPUs < 1 || f.Shape.MemoryMB < 1 || f.Shape.DiskGB < 0 {
			return fault.Field("flavors", "one has %v; it needs VCPUs and memory", f.Shape)
		}
	}
	return nil
}

// MeanLifetime returns the mean lifetime in seconds, where longer lifetimes than Longest count as
// Longest.
func (m VMModel) MeanLifetime() float64 {
	longest := float64(m.Longest)
	if m.Spread == 0 {
		return min(m.Median, longest)
	}
	below := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	at := math.Log(longest/m.Median) / m.Spread
	return m.Median*math.Exp(m.Spread*m.Spread/2)*below(at-m.Spread) + longest*(1-below(at))
}

// MeanVCPUs returns the mean number of VCPUs of a machine.
func (m VMModel) MeanVCPUs() float64 {
	vcpus, weights := 0.0, 0.0
	for _, f := range m.Flavors {
		vcpus += f.Weight * float64(f.Shape.VCPUs)
		weights += f.Weight
	}
	return vcpus / weights
}

// VMs is an endless Stream of generated virtual machines.
type VMs struct {
	model   VMModel
	chance  *rand.Rand
	weights float64
	at      float64
	made    int64
}

// NewVMs returns a stream that starts at midnight.
func NewVMs(chance *rand.Rand, m VMModel) (*VMs, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	v := &VMs{model: m, chance: chance}
	for _, f := range m.Flavors {
		v.weights += f.Weight
	}
	return v, nil
}

// Next returns the next machine. The random numbers do not depend on the share of preemptible
// machines: those of a smaller share are preemptible with a larger one too.
func (v *VMs) Next() (Job, error) {
	v.arrive()
	v.made++
	j := Job{ID: strconv.FormatInt(v.made, 10), Submit: int64(v.at), Waited: -1, Size: 1, Shape: v.flavor()}
	lifetime := v.model.Median * math.Exp(v.model.Spread*v.chance.NormFloat64())
	j.Runtime = max(1, int64(min(lifetime, float64(v.model.Longest))))
	j.Preemptible = v.chance.Float64() < v.model.Preemptible
	j.User = j.ID
	return j, nil
}

// arrive advances to the next arrival. It draws arrivals at the highest rate and drops some of them
// (thinning, Lewis and Shedler 1979).
func (v *VMs) arrive() {
	const day = 86400
	m := v.model
	for gap := day / (m.PerDay * (1 + m.Swing)); ; {
		v.at += gap * v.chance.ExpFloat64()
		rate := 1 + m.Swing*math.Cos(2*math.Pi*(v.at-float64(m.Peak))/day)
		if v.chance.Float64()*(1+m.Swing) < rate {
			return
		}
	}
}

// flavor draws the size of a virtual machine by the weights of the model.
func (v *VMs) flavor() resource.Vector {
	drawn := v.chance.Float64() * v.weights
	for _, f := range v.model.Flavors {
		if drawn -= f.Weight; drawn < 0 {
			return f.Shape
		}
	}
	return v.model.Flavors[len(v.model.Flavors)-1].Shape
}
