// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// sliceMonth returns a calendar of hosts with 64 vCPUs and a month of claims on slices of 4
// vCPUs for 1 to 72 hours. If the hosts fill up, the claims spread over more months.
func sliceMonth(b *testing.B, hosts, claims int) (c *calendar.Calendar, end span.Instant) {
	b.Helper()
	capacity := resource.Vector{VCPUs: 64, MemoryMB: 640_000, DiskGB: 10_000}
	c = calendar.New(slices.Repeat([]resource.Vector{capacity}, hosts), 0)
	random := rand.New(rand.NewPCG(1, 1))
	demand := resource.Vector{VCPUs: 4, MemoryMB: 8_000, DiskGB: 40}
	end = span.Instant(30 * day)
	for made, tries := 0, 0; made < claims; tries++ {
		if tries > 4*claims {
			end, tries = end+span.Instant(30*day), 0
		}
		w := span.New(span.Instant(random.Int64N(int64(end))), hour*(1+random.Int64N(72)))
		if c.Add(calendar.Claim{Host: random.IntN(hosts), Span: w, Slice: demand}) == nil {
			made++
		}
	}
	return c, end
}

// allButTen is the number of vCPUs of the hosts of sliceMonth without ten.
func allButTen(hosts int) int { return 64*hosts - 10 }

// sliceQuery draws a question about a day for instances with so many vCPUs, until the end of all claims.
func sliceQuery(random *rand.Rand, end span.Instant, vcpus int64, quantity int) calendar.SliceQuery {
	return calendar.SliceQuery{
		Query: calendar.Query{Ready: span.Instant(random.Int64N(int64(end) / 4)), Deadline: end, Duration: day, Quantity: quantity},
		Shape: resource.Vector{VCPUs: vcpus, MemoryMB: 8_000, DiskGB: 40},
	}
}

// earliestOrMost looks for the earliest start, and does what a refusal does if there is none: it counts
// how many would fit, and looks for a later start.
func earliestOrMost(c *calendar.Calendar, q calendar.SliceQuery) {
	if _, found := c.EarliestSlices(q); !found {
		c.MostSlices(q, 1<<20)
		q.Ready, q.Deadline = q.Deadline.Add(1-q.Duration), span.Forever
		c.EarliestSlices(q)
	}
}

// BenchmarkSlices measures the search for room for instances: an offer that finds some, and a
// refusal with its alternatives. Beside each it measures the least possible work, one walk
// through all claims on the hosts.
func BenchmarkSlices(b *testing.B) {
	const hosts = 100
	for _, claims := range []int{10_000, 100_000} {
		c, end := sliceMonth(b, hosts, claims)
		walk := timed(func() {
			for host := range hosts {
				c.Held(host, span.Span{End: span.Forever})
			}
		})
		for _, ask := range []struct {
			name     string
			vcpus    int64
			quantity int
		}{
			{"offer", 4, 8},
			{"offer-late", 32, 150},
			{"refusal-too-many", 48, 100},
			{"refusal-too-many-small", 1, allButTen(hosts)},
		} {
			b.Run(fmt.Sprintf("%s/hosts=%d/claims=%d", ask.name, hosts, claims), func(b *testing.B) {
				random := rand.New(rand.NewPCG(2, 2))
				var times []time.Duration
				for b.Loop() {
					q := sliceQuery(random, end, ask.vcpus, ask.quantity)
					times = append(times, timed(func() { earliestOrMost(c, q) }))
				}
				b.ReportMetric(float64(percentile(times, 0.5).Nanoseconds())/1e3, "p50-us")
				b.ReportMetric(float64(percentile(times, 0.99).Nanoseconds())/1e3, "p99-us")
				b.ReportMetric(float64(walk.Nanoseconds())/1e3, "walk-us")
			})
		}
	}
}
