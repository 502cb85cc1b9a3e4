// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// BenchmarkTogether measures a decision by each rule beside the same decision without one, in the same run, over 10,000 hosts
// in 100 racks with 100,000 claims: 16 hosts or instances for a day within a week. The row scattered is one that racks cannot
// hold at the first start with room, so that the hosts of each rack are searched.
func BenchmarkTogether(b *testing.B) {
	for _, kind := range reservation.HostKinds {
		v := largeCloud(b, kind)
		near := reservation.Reservation{ID: "x"}
		for number := range 16 {
			near.Claims = append(near.Claims, reservation.Claim{Host: v.Hosts.Names()[number], Span: span.New(v.Now, day)})
		}
		v.Apart = func(string, []string) []planning.Neighbor {
			return []planning.Neighbor{{Of: &near, Claims: near.Claims}}
		}
		a := reservation.Terms{Kind: kind, Quantity: 16}
		if kind == reservation.Instances {
			a.Resources = resource.Vector{VCPUs: 24, MemoryMB: 1000}
		}
		scattered := a
		scattered.Quantity = 64
		if kind == reservation.Instances {
			scattered.Quantity = 190
		}
		for _, row := range []struct {
			name  string
			terms reservation.Terms
			rule  reservation.Together
		}{
			{"same", a, reservation.Together{By: "rack", Rule: reservation.TogetherSame}},
			{"same preferred", a, reservation.Together{By: "rack", Rule: reservation.TogetherSame, Preferred: true}},
			{"spread", a, reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: 8}},
			{"fewest", a, reservation.Together{By: "rack", Rule: reservation.TogetherFewest, Preferred: true}},
			{"apart", a, reservation.Together{By: "rack", ApartFrom: "x"}},
			{"same/scattered", scattered, reservation.Together{By: "rack", Rule: reservation.TogetherSame}},
		} {
			ruled := row.terms
			ruled.Together = row.rule
			b.Run(fmt.Sprintf("%s/%s", kind, row.name), func(b *testing.B) { measureTogether(b, v, row.terms, ruled) })
		}
	}
}

func measureTogether(b *testing.B, v planning.View, plain, ruled reservation.Terms) {
	var times [2][]int64
	for b.Loop() {
		for i, terms := range []reservation.Terms{plain, ruled} {
			times[i] = append(times[i], spent(b, func() {
				if _, err := planning.NewPlan(v, reservation.Request{Terms: terms, Start: v.Now, End: v.Now.Add(7 * day), Duration: day}); err != nil {
					b.Fatal(err)
				}
			}))
		}
	}
	b.ReportMetric(median(times[0])/1e6, "plan-ms")
	b.ReportMetric(median(times[1])/1e6, "together-ms")
	b.ReportMetric(100*(median(times[1])/median(times[0])-1), "%-slower")
}
