// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// LublinArrivals are arrivals with a daily cycle. The natural logarithm of the gap between two
// jobs, in seconds at the mean rate of the day, has a gamma distribution. The rate differs between
// the half hours of the day, by a second gamma distribution, which stretches or shrinks the gaps.
type LublinArrivals struct {
	Shape, Scale float64 // of the gaps in the rush hours
	// RushToAll × Shape is the shape of the gaps' distribution at all hours.
	RushToAll float64
	// DayShape and DayScale describe the half hour in which a job arrives; see Profile.
	DayShape, DayScale float64
	// Pace multiplies all gaps without changing the daily cycle; 0 means 1.
	Pace float64
}

// The day.
const (
	buckets    = 48 // half hours
	bucketSpan = 1800.0
	// dayStart is the half hour, counted from 1 at midnight, in which the day of the second
	// distribution starts: at five o'clock in the morning.
	dayStart = 11
)

// longestGap is the logarithm of the longest gap at the mean rate: 5 days.
const longestGap = 13

// check returns an Invalid fault if a parameter is out of range.
func (a LublinArrivals) check() error {
	for _, c := range []error{
		positive("shape", a.Shape), positive("scale", a.Scale), positive("rush_to_all", a.RushToAll),
		positive("day_shape", a.DayShape), positive("day_scale", a.DayScale),
	} {
		if c != nil {
			return c
		}
	}
	if c := positive("pace", a.pace()); c != nil {
		return c
	}
	if c := soon("scale", a.Shape*a.RushToAll, a.Scale, longestGap); c != nil {
		return c
	}
	for _, weight := range a.Profile() {
		const least = 1e-9 // a half hour with a rate of 0 would make endless gaps
		if !(weight > least) {
			return fault.Field("day_scale", "leaves half hours without any arrival")
		}
	}
	return nil
}

// Profile returns the rate of each half hour of the day, from midnight, relative to the mean of
// the day, which is 1.
func (a LublinArrivals) Profile() [buckets]float64 {
	var weights [buckets]float64
	g := gamma(a.DayShape, a.DayScale, nil)
	sum := 0.0
	for i := dayStart; i < dayStart+buckets; i++ {
		w := g.CDF(float64(i)+0.5) - g.CDF(float64(i)-0.5)
		weights[(i-1)%buckets] = w
		sum += w
	}
	for i := range weights {
		weights[i] *= buckets / sum
	}
	return weights
}

// MeanGap returns the mean gap over days in seconds, by numerical integration of the
// distribution.
func (a LublinArrivals) MeanGap() float64 {
	g := gamma(a.Shape*a.RushToAll, a.Scale, nil)
	const steps = 20_000
	sum := 0.0
	for i := range steps {
		x := (float64(i) + 0.5) * longestGap / steps
		sum += g.Prob(x) * math.Exp(x) * longestGap / steps
	}
	return a.pace() * sum / g.CDF(longestGap)
}

// pace returns by how much arrivals are faster than in the paper; 1 if Pace is not set.
func (a LublinArrivals) pace() float64 {
	if a.Pace == 0 {
		return 1
	}
	return a.Pace
}

// LublinProcess implements Arrivals for the model.
type LublinProcess struct {
	chance  *rand.Rand
	gap     LublinArrivals
	profile [buckets]float64
	days    float64 // whole days since the start
	bucket  int     // half hours since the start of the day
	paid    float64 // the used part of the bucket's weight
}

// Process returns arrivals that start at midnight. Their mean rate follows the Profile.
func (a LublinArrivals) Process(chance *rand.Rand) *LublinProcess {
	return &LublinProcess{chance: chance, gap: a, profile: a.Profile()}
}

// Next returns the next arrival. At any pace, no gap is longer than 34,000 years.
func (p *LublinProcess) Next() float64 {
	p.paid += min(p.gap.pace()*p.draw(), mostTime) / bucketSpan
	rest := math.Mod(p.paid, buckets) // a whole day uses up all weights once
	p.days += (p.paid - rest) / buckets
	for p.paid = rest; p.paid > p.profile[p.bucket]; {
		p.paid -= p.profile[p.bucket]
		if p.bucket++; p.bucket == buckets {
			p.bucket = 0
			p.days++
		}
	}
	return bucketSpan * (buckets*p.days + float64(p.bucket) + p.paid/p.profile[p.bucket])
}

// draw returns a gap in seconds at the mean rate.
func (p *LublinProcess) draw() float64 {
	for {
		if x := gamma(p.gap.Shape*p.gap.RushToAll, p.gap.Scale, p.chance).Rand(); x <= longestGap {
			return math.Exp(x)
		}
	}
}
