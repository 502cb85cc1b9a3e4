// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// busy returns a cloud of nodes for 8 virtual machines each, nearly full, with reservations
// ahead on every other node. The number of virtual machines that wait is waiting; each
// request has each of them.
func busy(nodes, waiting, each int, parallel bool) besteffort.Situation {
	const now = 1_000_000
	s := besteffort.Situation{Now: now}
	for i := range nodes {
		name := fmt.Sprintf("N%04d", i)
		s.Nodes = append(s.Nodes, node(name, 8))
		r := job(fmt.Sprintf("R%04d", i), 7200, 8-i%2, false).Request
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
		s := busy(c.nodes, c.waiting, c.each, c.parallel)
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
