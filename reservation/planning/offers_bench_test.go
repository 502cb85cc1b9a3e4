// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/tests/growth"
)

const hour, day = 3600, 24 * 3600

// largeCloud returns a view of 10,000 hosts with 100,000 claims within 90 days, on whole hosts or for instances.
func largeCloud(b *testing.B, kind reservation.Kind) planning.View {
	b.Helper()
	return crowdedCloud(b, kind, 10_000, 10, 17*day)
}

// crowdedCloud returns a view of hosts in 100 racks with so many claims each, of up to 73 hours with gaps of up to so many seconds.
func crowdedCloud(b *testing.B, kind reservation.Kind, many, claims int, gap int64) planning.View {
	b.Helper()
	const now = span.Instant(2_000_000_000)
	var hosts []inventory.Host
	var holds []planning.Hold
	random := rand.New(rand.NewPCG(1, 1))
	for i := range many {
		name := fmt.Sprintf("h%05d", i)
		hosts = append(hosts, inventory.Host{
			Name: name, Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: 64, MemoryMB: 640_000, DiskGB: 10_000},
			Properties: map[string]inventory.Value{"rack": inventory.StringValue(fmt.Sprint(i % 100))},
		})
		free := now
		for range claims {
			h := planning.Hold{Host: name, Span: span.New(free.Add(random.Int64N(gap)), hour+random.Int64N(72*hour))}
			if kind == reservation.Instances {
				h.Resources = resource.Vector{VCPUs: 16, MemoryMB: 1000}
			}
			holds, free = append(holds, h), h.Span.End
		}
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	v, err := planning.NewView(now, s, holds)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkOffers measures the offers for a wish over 10,000 hosts with 100,000 claims, and how many times a plain decision
// on the same cloud they take: 16 hosts for a day within a week.
func BenchmarkOffers(b *testing.B) {
	racks := func(a reservation.Terms) (list []reservation.Terms) {
		for _, filter := range []string{`["<", "$rack", "3"]`, `["<", "$rack", "5"]`, `["<", "$rack", "8"]`, ""} {
			a.HostProperties = filter
			list = append(list, a)
		}
		return list
	}
	for _, kind := range reservation.HostKinds {
		v := largeCloud(b, kind)
		a := reservation.Terms{Kind: kind}
		if kind == reservation.Instances {
			a.Resources = resource.Vector{VCPUs: 24, MemoryMB: 1000}
		}
		narrow := []span.Span{span.New(v.Now, 5*day), span.New(v.Now.Add(20*day), 5*day)}
		for _, row := range []struct {
			name string
			wish planning.Wish
		}{
			{"whole", planning.Wish{Quantity: planning.Range{Min: 8, Max: 64}, Duration: planning.Range{Min: hour, Max: 48 * hour}}},
			{"partial", planning.Wish{Quantity: planning.Range{Min: 8, Max: 9_900}, Duration: planning.Range{Min: hour, Max: 120 * hour}, Windows: narrow}},
			{"four alternatives", planning.Wish{Quantity: planning.Range{Min: 8, Max: 9_900}, Duration: planning.Range{Min: hour, Max: 120 * hour}, Windows: narrow, Alternatives: racks(a)}},
		} {
			if row.wish.Alternatives == nil {
				row.wish.Alternatives = []reservation.Terms{a}
			}
			b.Run(fmt.Sprintf("%s/%s", kind, row.name), func(b *testing.B) { measureOffers(b, v, a, row.wish) })
		}
	}
}

// measureOffers measures offers beside two plain decisions: one that finds room at once, and one about all that the wish asks
// for, whose refusal explains what there is.
func measureOffers(b *testing.B, v planning.View, a reservation.Terms, w planning.Wish) {
	a.Quantity = 16
	easy := reservation.Request{Terms: a, Start: v.Now, End: v.Now.Add(7 * day), Duration: day}
	whole := reservation.Request{Terms: w.Alternatives[0], Start: v.Now, End: v.Now.Add(90 * day), Duration: w.Duration.Max}
	whole.Quantity = int(w.Quantity.Max)
	if w.Windows != nil {
		whole.End = w.Windows[0].End
	}
	var plans, wholes, asked []int64
	offered, finished := 0, true
	for b.Loop() {
		plans = append(plans, spent(b, func() {
			if _, err := planning.NewPlan(v, easy); err != nil {
				b.Fatal(err)
			}
		}))
		wholes = append(wholes, spent(b, func() { _, _ = planning.NewPlan(v, whole) })) // some are refused
		asked = append(asked, spent(b, func() {
			offers, complete, err := planning.Offers(v, w)
			if err != nil {
				b.Fatal(err)
			}
			offered, finished = len(offers), complete
		}))
	}
	b.ReportMetric(median(plans)/1e6, "plan-ms")
	b.ReportMetric(median(wholes)/1e6, "whole-plan-ms")
	b.ReportMetric(median(asked)/1e6, "offers-ms")
	b.ReportMetric(median(asked)/median(plans), "x-plan")
	b.ReportMetric(median(asked)/median(wholes), "x-whole-plan")
	b.ReportMetric(float64(offered), "offers")
	if !finished {
		b.ReportMetric(1, "incomplete")
	}
}

// spent returns the CPU time of a call, in ns.
func spent(b *testing.B, do func()) int64 {
	begin := growth.CPUTime(b)
	do()
	return growth.CPUTime(b) - begin
}

func median(times []int64) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}
