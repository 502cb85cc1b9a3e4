// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/tests/growth"
)

// busy returns a cloud of nodes for so many virtual machines each, nearly full, with reservations
// ahead on every other node. The number of virtual machines that wait is waiting; each
// request has each of them.
func busy(nodes, places, waiting, each int, parallel bool) besteffort.Situation {
	const now = 1_000_000
	s := besteffort.Situation{Now: now}
	for i := range nodes {
		name := fmt.Sprintf("N%04d", i)
		s.Nodes = append(s.Nodes, node(name, int64(places)))
		r := job(fmt.Sprintf("R%04d", i), 7200, places-i%2, false).Request
		r.Place = int64(i + 1)
		for v := range r.VMs {
			r.VMs[v].Phase, r.VMs[v].Node = besteffort.Running, name
			r.VMs[v].Since, r.VMs[v].Until = now-100, now+span.Instant(600+37*i%5000)
		}
		s.Requests = append(s.Requests, r)
		if i%2 == 0 {
			s.Holds = append(s.Holds, whole(name, now+span.Instant(3000+i), now+span.Instant(9000+i)))
		}
	}
	for i := 0; i < waiting; i += each {
		r := job(fmt.Sprintf("W%04d", i), int64(1000+i%4000), each, parallel).Request
		r.Place = int64(nodes + i + 1)
		for v := range r.VMs {
			r.VMs[v].Phase = besteffort.Waiting
		}
		s.Requests = append(s.Requests, r)
	}
	return s
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name           string
		nodes, waiting int
		each           int
		parallel       bool
		images         bool
		rules          besteffort.Rules
	}{
		{"serial/aggressive", 1000, 1000, 1, false, false, besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}},
		{"serial/conservative", 1000, 1000, 1, false, false, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
		{"serial/none", 1000, 1000, 1, false, false, besteffort.Rules{Backfilling: besteffort.None}},
		{"serial/images", 1000, 1000, 1, false, true, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
		{"serial/10 nodes", 10, 1000, 1, false, false, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
		{"parallel/aggressive", 1000, 1000, 4, true, false, besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}},
		{"parallel/conservative", 1000, 1000, 4, true, false, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
		{"parallel/10 nodes", 10, 1000, 4, true, false, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
	} {
		s := busy(c.nodes, 8, c.waiting, c.each, c.parallel)
		if c.images {
			s.Images = staging.Queue{Rate: 1e6, Avoid: true}
			for i := range s.Requests {
				id := fmt.Sprint("I", i%20)
				s.Requests[i].Image = staging.Image{ID: id, Size: 1e7}
			}
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.rules.Plan(s)
			}
		})
	}
}

// queued returns a cloud of nodes for four virtual machines each, with three that wait for each two nodes.
func queued(nodes, each int, parallel bool) besteffort.Situation {
	return busy(nodes, 4, nodes*3/2, each, parallel)
}

// BenchmarkGrowth measures plans of single virtual machines, as in the first row of
// BenchmarkPlanOf10000Nodes.
func BenchmarkGrowth(b *testing.B) {
	rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}
	growth.Measure(b, "plan of best-effort work", func(_ *testing.B, hosts int) growth.Run {
		s := queued(hosts, 1, false)
		return growth.Same(func() { rules.Plan(s) })
	})
}

// BenchmarkPlanOf10000Nodes is a row of docs/performance.md: plans for 35,000 virtual machines that run and 15,000 that
// wait on 10,000 nodes. Beside it, a tenth of both is planned by searches that look at all nodes.
func BenchmarkPlanOf10000Nodes(b *testing.B) {
	for _, c := range []struct {
		name     string
		each     int
		parallel bool
		rules    besteffort.Rules
	}{
		{"aggressive", 1, false, besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}},
		{"conservative", 1, false, besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true}},
		{"none", 1, false, besteffort.Rules{Backfilling: besteffort.None}},
		{"parallel", 4, true, besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}},
	} {
		s, tenth := queued(10_000, c.each, c.parallel), queued(1000, c.each, c.parallel)
		b.Run(c.name, func(b *testing.B) {
			var whole, part, thorough []time.Duration
			for b.Loop() {
				whole = append(whole, took(func() { c.rules.Plan(s) }))
				part = append(part, took(func() { c.rules.Plan(tenth) }))
				thorough = append(thorough, took(func() { c.rules.PlanThoroughly(tenth) }))
			}
			b.ReportMetric(milliseconds(whole), "ms/plan-p50")
			b.ReportMetric(200, "ms/plan-goal")
			b.ReportMetric(milliseconds(part), "ms/tenth-p50")
			b.ReportMetric(milliseconds(thorough), "ms/tenth-of-all-nodes-p50")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func took(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// milliseconds returns the median.
func milliseconds(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}
