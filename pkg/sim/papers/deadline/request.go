// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"math"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// The machine of the paper, for which its job sizes are defined.
const (
	paperHosts = 1024
	// smallest is the least number of hosts of a machine: then its smallest jobs have one host.
	smallest = 32
	// sizeScale divides the sizes before they enter the formula of run times, whose constants are
	// for a machine of 128 processors.
	sizeScale = paperHosts / 128
)

// sizes returns the sizes of the paper's jobs: all parallel, all powers of two from 32 to 1,024.
func (s setting) sizes() workload.LublinSizes {
	return workload.LublinSizes{PowerOfTwo: 1, Low: 4.5, Medium: s.UMed, High: 10, LowShare: 0.82}
}

// runtimes are the run times of the paper's jobs, in seconds.
var runtimes = [...]int64{60, 300, 900, 1800, 3600, 10800}

// runtimeCDF returns the probability, for each of the runtimes, that a job of the size takes at
// most that long on the paper's machine. A run time that the model draws is rounded to the nearest
// of the runtimes.
func runtimeCDF(size int) (cdf [len(runtimes)]float64) {
	model := workload.Typeless().Runtimes
	for i := range cdf {
		cdf[i] = 1
		if i+1 < len(cdf) {
			cdf[i] = model.CDF(float64(runtimes[i]+runtimes[i+1])/2, float64(size)/sizeScale)
		}
	}
	return cdf
}

// work returns the mean over the jobs of hosts × seconds, on the paper's machine.
func (s setting) work() float64 {
	sizes, sum := s.sizes(), 0.0
	for power := math.Round(sizes.Low); power <= sizes.High; power++ {
		likely := sizes.PowerCDF(power+0.5) - sizes.PowerCDF(power-0.5)
		seconds, below := 0.0, 0.0
		for i, p := range runtimeCDF(int(math.Exp2(power))) {
			seconds += float64(runtimes[i]) * (p - below)
			below = p
		}
		sum += likely * math.Exp2(power) * seconds
	}
	return sum
}

// request is one job, with times in seconds since the beginning of the run.
type request struct {
	arrival, ready, latestEnd, duration int64
	hosts                               int
}

// work returns the hosts × seconds of the request.
func (r *request) work() float64 { return float64(r.hosts) * float64(r.duration) }

// requests returns the requests of a run with a setting. Within a run, everything that does not
// depend on the setting is the same in all settings.
func (o Options) requests(s setting, run int) []request {
	chance := func(of string) *rand.Rand { return sim.Chance(o.Seed, "deadline", of, run) }
	arrivals, sizing, lasting, waiting := o.arrivals(s.Arrivals, chance("arrivals")), chance("sizes"), chance("run times"), chance("windows")
	sizes, cdfs := s.sizes(), map[int][len(runtimes)]float64{}
	made := make([]request, o.Jobs)
	for i := range made {
		size := int(math.Exp2(math.Round(sizes.Power(sizing.Float64(), sizing.Float64()))))
		if _, known := cdfs[size]; !known {
			cdfs[size] = runtimeCDF(size)
		}
		r := request{hosts: size * o.Hosts / paperHosts, duration: runtimes[len(runtimes)-1]}
		place := lasting.Float64()
		for k, p := range cdfs[size] {
			if place < p {
				r.duration = runtimes[k]
				break
			}
		}
		r.arrival = int64(arrivals.Next() / s.ArrivalFactor)
		r.ready = r.arrival + int64(s.Flexibility*waiting.Float64()*float64(r.duration))
		r.latestEnd = r.ready + r.duration + int64(s.Flexibility*waiting.Float64()*float64(r.duration))
		made[i] = r
	}
	return made
}

// arrivals returns the arrival process of a kind, for arrival factor 1.
func (o Options) arrivals(kind string, chance *rand.Rand) workload.Arrivals {
	model := workload.Typeless().Arrivals
	gap := model.MeanGap()
	if o.Load > 0 {
		model.Pace = usual.work() / (paperHosts * o.Load * gap)
		gap *= model.Pace
	}
	if kind == Poisson {
		return workload.NewPoisson(chance, gap)
	}
	return model.Process(chance)
}

// load returns the share of the machine that would be busy if all jobs were accepted.
func (o Options) load() float64 {
	if o.Load > 0 {
		return o.Load
	}
	return usual.work() / (paperHosts * workload.Typeless().Arrivals.MeanGap())
}
