// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/growth"
	"github.com/almanac-cloud/almanac/weighers"
)

// manyHosts returns a cloud of hosts in three zones, half full, one in a hundred down, one in
// twenty promised.
func manyHosts(tb testing.TB, hosts int) (*inventory.States, promises) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]inventory.HostState, hosts)
	zones := make([]inventory.Aggregate, 3)
	var claims promises
	for i := range rows {
		name := fmt.Sprintf("node-%05d", i)
		zone := i % len(zones)
		zones[zone].Hosts = append(zones[zone].Hosts, name)
		rows[i] = inventory.HostState{
			Name: name, Node: name, Cell: "cell1", Zone: fmt.Sprint("az", zone), Up: r.IntN(100) > 0, Enabled: true,
			IOOps: r.Int64N(4), FailedBuilds: r.Int64N(50) / 49, Traits: []string{"HW_CPU_X86_AVX2", "COMPUTE_VOLUME_MULTI_ATTACH"},
			Stocks: map[string]inventory.Stock{
				"VCPU":      {Total: 64, Ratio: 4, Used: r.Int64N(250)},
				"MEMORY_MB": {Total: 262144, Reserved: 2048, Ratio: 1, Used: r.Int64N(255) * 1024},
				"DISK_GB":   {Total: 2000, Ratio: 1, Used: r.Int64N(1900)},
			},
		}
		if r.IntN(20) == 0 {
			claims = append(claims, reservation.Claim{Host: name, Span: span.New(span.Instant(3600+r.Int64N(30*24*3600)), 3600)})
		}
	}
	for i := range zones {
		zones[i].UUID, zones[i].Zone = fmt.Sprint("zone-", i), fmt.Sprint("az", i)
		zones[i].Metadata = map[string]string{"availability_zone": zones[i].Zone}
	}
	s, err := inventory.NewStates(rows, zones)
	if err != nil {
		tb.Fatal(err)
	}
	return s, claims
}

// promises are the next claims.
type promises []reservation.Claim

func (p promises) Promised(span.Instant) []reservation.Claim { return p }

func (promises) Revision() uint64 { return 0 }

func (promises) Reservation(string) (reservation.Reservation, bool) {
	return reservation.Reservation{}, false
}

// efficiencies is a snapshot of hosts in which every other one is twice as efficient.
type efficiencies struct{ snapshot *inventory.Snapshot }

func (e efficiencies) Snapshot() *inventory.Snapshot { return e.snapshot }

func efficiencyOf(tb interface{ Fatal(...any) }, s *inventory.States) efficiencies {
	hosts := make([]inventory.Host, s.Len())
	for i := range hosts {
		hosts[i] = inventory.Host{Name: s.Host(i).Name, FlopsPerWatt: float64(1+i%2) * 1e9}
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return efficiencies{snapshot}
}

func allWeighers(tb testing.TB, p weighers.Ports) []weighers.Weighted {
	all, err := weighers.Choose([]string{weighers.AllWeighers}, nil, p)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// defaultPipeline returns a pipeline of the default filters and all weighers for hosts with claims, and a
// request for one instance.
func defaultPipeline(b *testing.B, s *inventory.States, claims promises) (scheduler.Pipeline, *placing.Request) {
	list, err := filters.New(filters.Enabled, filters.Options{
		Reservation: filters.Reservation{Promises: claims, Fence: filters.FenceLeadTime, LeadTime: 3600}, DefaultAvailabilityZone: "nova",
		EnableIsolatedAggregateFiltering: true, LimitTenantsToPlacementAggregate: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	p := scheduler.Pipeline{
		Filters: list, Weighers: allWeighers(b, weighers.Ports{Promises: claims, Efficiencies: efficiencyOf(b, s)}),
		SubsetSize: 1, ShuffleBest: true,
	}
	return p, &placing.Request{
		Instances: []string{"one"}, Alternates: 2, Required: []string{"HW_CPU_X86_AVX2"},
		Resources: map[string]int64{"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40},
	}
}

// BenchmarkGrowth measures the plan of BenchmarkPlan10000Hosts, and that with eviction of
// BenchmarkPlan10000HostsWithEviction.
func BenchmarkGrowth(b *testing.B) {
	growth.Measure(b, "filters and weighers", func(b *testing.B, hosts int) growth.Run {
		s, claims := manyHosts(b, hosts)
		p, request := defaultPipeline(b, s, claims)
		draw := rand.New(rand.NewPCG(1, 1)).IntN
		return growth.Same(func() {
			if plan := p.Plan(s, request, 0, draw); len(plan.Picks) != 1 {
				b.Fatal(plan.Decision.Reason)
			}
		})
	})
	growth.Measure(b, "placement with eviction", func(b *testing.B, hosts int) growth.Run {
		full, ours := filledHosts(b, hosts, 36), contenders(b)[1]
		request := &placing.Request{Instances: []string{"one"}, Resources: medium, Alternates: 2}
		return growth.Same(func() {
			if plan := ours.plan(full, request); len(plan.Picks) != 1 || len(plan.Picks[0].Victims.Instances) != 1 {
				b.Fatal(plan.Decision.Reason)
			}
		})
	})
}

// BenchmarkPlan10000Hosts is row 4 of docs/performance.md: the whole plan for one instance with
// the default filters and weighers, including its explanation, alternating with the bare loop.
func BenchmarkPlan10000Hosts(b *testing.B) {
	s, claims := manyHosts(b, 10_000)
	p, request := defaultPipeline(b, s, claims)
	draw := rand.New(rand.NewPCG(1, 1)).IntN
	loop := newBareLoop(b, s, claims, request)
	var ours, bare []time.Duration
	for b.Loop() {
		start := time.Now()
		if plan := p.Plan(s, request, 0, draw); len(plan.Picks) != 1 {
			b.Fatal(plan.Decision.Reason)
		}
		between := time.Now()
		if loop.best() < 0 {
			b.Fatal("no host")
		}
		ours, bare = append(ours, between.Sub(start)), append(bare, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(bare)
	microseconds := func(times []time.Duration) float64 { return float64(times[len(times)/2].Nanoseconds()) / 1000 }
	b.ReportMetric(microseconds(ours), "µs/plan-p50")
	b.ReportMetric(microseconds(bare), "µs/bare-loop-p50")
	b.ReportMetric(microseconds(ours)/microseconds(bare), "times")
	b.ReportMetric(1.5, "times-goal")
	b.ReportMetric(0, "ns/op")
}

// bareLoop is the least work that places one instance: one pass over the same columns. It knows
// the greatest weights beforehand, and neither explains nor draws.
type bareLoop struct {
	states                           *inventory.States
	vcpu, memory, disk               *inventory.Column
	vcpus, megabytes, gigabytes      int64
	up, enabled, trait, switchedOff  hostset.Set
	free, flops                      []float64
	failures                         []int64
	mostVCPU, mostMemory, mostDisk   float64
	mostOps, mostFailures, mostFlops float64
}

func newBareLoop(tb testing.TB, s *inventory.States, claims promises, r *placing.Request) *bareLoop {
	l := &bareLoop{
		states: s, vcpu: s.Column("VCPU"), memory: s.Column("MEMORY_MB"), disk: s.Column("DISK_GB"),
		vcpus: r.Resources["VCPU"], megabytes: r.Resources["MEMORY_MB"], gigabytes: r.Resources["DISK_GB"],
		up: s.Up(), enabled: s.Enabled(), trait: s.Trait(r.Required[0]), switchedOff: s.Trait("COMPUTE_STATUS_DISABLED"),
		mostVCPU: 256, mostMemory: 260096, mostDisk: 2000, mostOps: 3, mostFailures: 1, mostFlops: 2e9,
	}
	snapshot := efficiencyOf(tb, s).Snapshot()
	l.free = slices.Repeat([]float64{1}, s.Len())
	for _, c := range claims {
		if i, known := s.Index(c.Host); known {
			l.free[i] = float64(c.Span.Start) / float64(c.Span.Start+24*3600)
		}
	}
	for i := range s.Len() {
		l.flops = append(l.flops, snapshot.Host(i).FlopsPerWatt)
		l.failures = append(l.failures, s.Host(i).FailedBuilds)
	}
	return l
}

func (l *bareLoop) best() int {
	best, top := -1, math.Inf(-1)
	ops, failures := l.states.IOOps(), l.failures
	for i := range l.vcpu.Limit {
		if !fits(l.vcpu, i, l.vcpus) || !fits(l.memory, i, l.megabytes) || !fits(l.disk, i, l.gigabytes) ||
			!l.up.Has(i) || !l.enabled.Has(i) || !l.trait.Has(i) || l.switchedOff.Has(i) {
			continue
		}
		weight := float64(l.vcpu.Limit[i]-l.vcpu.Used[i])/l.mostVCPU + float64(l.memory.Real[i]-l.memory.Used[i])/l.mostMemory +
			float64(l.disk.Real[i]-l.disk.Used[i])/l.mostDisk - float64(ops[i])/l.mostOps - 1e6*float64(failures[i])/l.mostFailures +
			10*l.free[i] + l.flops[i]/l.mostFlops
		if weight > top {
			best, top = i, weight
		}
	}
	return best
}

func fits(c *inventory.Column, i int, amount int64) bool {
	return amount <= c.Limit[i]-c.Used[i] && c.Min[i] <= amount && amount <= c.Max[i] && amount%c.Step[i] == 0
}
