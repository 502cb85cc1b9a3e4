// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/tests/growth"
	"github.com/almanac-cloud/almanac/weighers"
)

// BenchmarkPlace1000Hosts compares one caller of Place with 64 at once while Placement grants
// each claim immediately. A round is 256 placements of each, from the same states.
func BenchmarkPlace1000Hosts(b *testing.B) {
	const placements, callers = 256, 64
	r := newRound(b, 1000)
	var alone, together times
	for b.Loop() {
		r.reset()
		alone.add(r.run(1, placements))
		r.reset()
		together.add(r.run(callers, placements/callers))
	}
	alone.report(b, "alone")
	together.report(b, "together")
	b.ReportMetric(together.perPlacement()/alone.perPlacement(), "times-alone")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPlaceOnTwoCores compares 64 callers of Place on one core with 64 on two, in turn and from the same
// states, while Placement grants each claim immediately. Beside it are two clouds, with half of the callers
// each, which share nothing: what the machine allows. Of the times the shortest counts: in the other rounds,
// the machine did something else meanwhile. The CPU time of a placement does not depend on that.
func BenchmarkPlaceOnTwoCores(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Skip("needs two cores")
	}
	for _, hosts := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(hosts, "Hosts"), func(b *testing.B) {
			one, other := newRound(b, hosts), newRound(b, hosts)
			var together, apart [3]onCores // by the number of cores
			for b.Loop() {
				for cores := 1; cores <= 2; cores++ {
					together[cores].measure(cores, 64, one)
					apart[cores].measure(cores, 32, one, other)
				}
			}
			b.ReportMetric(together[1].shortest, "µs/placement-one-core")
			b.ReportMetric(together[2].shortest, "µs/placement-two-cores")
			b.ReportMetric(together[1].shortest/together[2].shortest, "times-one-core")
			b.ReportMetric(1.7, "times-goal")
			b.ReportMetric(apart[1].shortest/apart[2].shortest, "times-one-core-apart")
			b.ReportMetric(together[2].perPlacement()/together[1].perPlacement(), "cpu-times-one-core")
			b.ReportMetric(apart[2].perPlacement()/apart[1].perPlacement(), "cpu-times-one-core-apart")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// onCores is what placements on so many cores take, in µs.
type onCores struct {
	shortest   float64 // of a placement, in one round
	cpu        float64 // of all rounds
	placements int
}

func (o *onCores) perPlacement() float64 { return o.cpu / float64(o.placements) }

// measure lets so many callers of each cloud place two instances each.
func (o *onCores) measure(cores, callers int, clouds ...*round) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	for _, r := range clouds {
		r.reset()
	}
	placements := 2 * callers * len(clouds)
	begun, used := time.Now(), growth.CPUTime(clouds[0].tb)
	var group sync.WaitGroup
	for _, r := range clouds {
		group.Go(func() { r.run(callers, 2) })
	}
	group.Wait()
	took := float64(time.Since(begun).Nanoseconds()) / float64(placements) / 1000
	if o.placements == 0 || took < o.shortest {
		o.shortest = took
	}
	o.cpu, o.placements = o.cpu+float64(growth.CPUTime(clouds[0].tb)-used)/1000, o.placements+placements
}

// round is a Dispatcher with the default filters and weighers.
type round struct {
	*dispatch.Dispatcher
	board  *inventory.LiveState
	states *inventory.States
	plans  atomic.Int64
	next   atomic.Int64
	tb     testing.TB
}

func newRound(tb testing.TB, hosts int) *round {
	list, err := filters.New(filters.Enabled, filters.Options{
		Reservation:             filters.Reservation{Promises: noPromises{}, Fence: filters.FenceLeadTime, LeadTime: 3600},
		DefaultAvailabilityZone: "nova", EnableIsolatedAggregateFiltering: true, LimitTenantsToPlacementAggregate: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	weighers, err := weighers.Choose([]string{weighers.AllWeighers}, nil, weighers.Ports{Promises: noPromises{}, Efficiencies: noEfficiencies{}})
	if err != nil {
		tb.Fatal(err)
	}
	r := &round{board: inventory.NewLiveState(), states: halfFull(tb, hosts), tb: tb}
	pipeline := &scheduler.Pipeline{Filters: list, Weighers: weighers, SubsetSize: 1, ShuffleBest: true}
	r.Dispatcher = dispatch.New(withEvictor(dispatch.Options{
		Board: r.board, Planner: counted{pipeline, &r.plans}, Placement: granting{}, Looker: unneeded{}, Decisions: unneeded{},
		Now: time.Now, Draw: rand.IntN, Log: slog.New(slog.DiscardHandler),
	}))
	return r
}

// withEvictor adds an Evictor.
func withEvictor(o dispatch.Options) dispatch.Options {
	o.Evictor = eviction.New(eviction.Options{Board: o.Board, Placement: o.Placement, Looker: o.Looker, Now: o.Now, Log: o.Log})
	return o
}

// halfFull returns hosts that are about half used.
func halfFull(tb testing.TB, hosts int) *inventory.States {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]inventory.HostState, hosts)
	for i := range rows {
		rows[i] = inventory.HostState{
			Name: fmt.Sprintf("node-%05d", i), Cell: "cell1", Zone: "nova", Up: true, Enabled: true, IOOps: r.Int64N(4),
			Stocks: map[string]inventory.Stock{
				"VCPU":      {Total: 64, Ratio: 4, Used: r.Int64N(250)},
				"MEMORY_MB": {Total: 262144, Reserved: 2048, Ratio: 1, Used: r.Int64N(255) * 1024},
				"DISK_GB":   {Total: 2000, Ratio: 1, Used: r.Int64N(1900)},
			},
		}
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func (r *round) reset() { r.board.Replace(r.board.BeginRead(), r.states, nil) }

// run lets each of the callers place this number of instances, one after the other, and returns
// how long each placement took, how long all took, and how many plans were made.
func (r *round) run(callers, each int) (took []time.Duration, all time.Duration, plans int64) {
	took = make([]time.Duration, callers*each)
	planned, begun := r.plans.Load(), time.Now()
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for n := range each {
				at := time.Now()
				r.place()
				took[c*each+n] = time.Since(at)
			}
		})
	}
	group.Wait()
	return took, time.Since(begun), r.plans.Load() - planned
}

func (r *round) place() {
	id := fmt.Sprint("instance-", r.next.Add(1))
	_, err := r.Place(context.Background(), &placing.Request{
		ID: "req-" + id, Instances: []string{id}, Alternates: 2,
		Resources: map[string]int64{"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40},
	})
	if err != nil {
		r.tb.Error(err)
	}
}

// times holds the times of some rounds.
type times struct {
	took  []time.Duration
	all   time.Duration
	plans int64
}

func (t *times) add(took []time.Duration, all time.Duration, plans int64) {
	t.took, t.all, t.plans = append(t.took, took...), t.all+all, t.plans+plans
}

func (t *times) perPlacement() float64 {
	return float64(t.all.Nanoseconds()) / float64(len(t.took)) / 1000
}

func (t *times) report(b *testing.B, who string) {
	slices.Sort(t.took)
	at := func(share float64) float64 {
		return float64(t.took[int(share*float64(len(t.took)-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(t.perPlacement(), "µs/placement-"+who)
	b.ReportMetric(at(0.5), "µs/p50-"+who)
	b.ReportMetric(at(0.99), "µs/p99-"+who)
	b.ReportMetric(float64(t.plans)/float64(len(t.took)), "plans/placement-"+who)
}

// counted counts the plans.
type counted struct {
	dispatch.Planner
	plans *atomic.Int64
}

func (c counted) Draft(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) *scheduler.Draft {
	c.plans.Add(1)
	return c.Planner.Draft(s, r, now, draw)
}

// granting is a Placement that grants everything immediately.
type granting struct{}

func (granting) Claim(context.Context, []placing.Claim) error { return nil }

func (granting) AllocationsOf(_ context.Context, consumer string) (placing.Claim, error) {
	return placing.Claim{Consumer: consumer}, nil
}

func (granting) Release(context.Context, []placing.Claim) error { return nil }

type unneeded struct{}

func (unneeded) Look(context.Context, []string) error { return nil }
func (unneeded) Keep(placing.Decision)                {}

type noPromises struct{}

func (noPromises) Promised(span.Instant) []reservation.Claim { return nil }
func (noPromises) Revision() uint64                          { return 0 }

func (noPromises) Reservation(string) (reservation.Reservation, bool) {
	return reservation.Reservation{}, false
}

type noEfficiencies struct{}

var noHosts inventory.Snapshot

func (noEfficiencies) Snapshot() *inventory.Snapshot { return &noHosts }
