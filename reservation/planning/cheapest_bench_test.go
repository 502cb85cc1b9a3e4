// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// BenchmarkCheapest measures whole decisions over 10,000 hosts with 100,000 claims, 16 hosts or instances for a day within a
// week, by the policies that can make them. The tariff has a price for each quarter of an hour.
func BenchmarkCheapest(b *testing.B) {
	for _, kind := range reservation.HostKinds {
		v := largeCloud(b, kind)
		var steps []tariff.Step
		for quarter := range int64(9 * 96) {
			steps = append(steps, tariff.Step{Span: span.New(v.Now.Add(900*quarter), 900), Price: quarter * 7919 % 101})
		}
		curve, err := tariff.New(steps)
		if err != nil {
			b.Fatal(err)
		}
		v.Tariff = &tariff.Reading{Curve: curve, Written: v.Now}
		for _, policy := range []calendar.Policy{calendar.PolicyFirstFit, calendar.PolicyPEWorstFit, calendar.PolicyCheapest} {
			terms := reservation.Terms{Name: "r", Kind: kind, Quantity: 16, Policy: policy}
			if kind == reservation.Instances {
				if policy.ComparesRectangles() {
					continue
				}
				terms.Resources = resource.Vector{VCPUs: 24, MemoryMB: 1000}
			}
			b.Run(fmt.Sprintf("%s/%s", kind, policy), func(b *testing.B) {
				var times []int64
				for b.Loop() {
					times = append(times, spent(b, func() {
						if _, err := planning.NewPlan(v, reservation.Request{Terms: terms, Start: v.Now, End: v.Now.Add(7 * day), Duration: day}); err != nil {
							b.Fatal(err)
						}
					}))
				}
				b.ReportMetric(median(times)/1e6, "plan-ms")
			})
		}
	}
}
