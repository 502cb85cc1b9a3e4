// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

const (
	// figureInstances is how many instances each bar schedules, as in the paper.
	figureInstances = 130
	figureNow       = span.Instant(1_800_000_000)
)

// medium is the size of all instances of the figure.
var medium = map[string]int64{"VCPU": 2, "MEMORY_MB": 4000, "DISK_GB": 40}

// filledHosts returns hosts for 36 medium instances, each with this many preemptible ones.
func filledHosts(tb testing.TB, hosts, fillers int) *inventory.States {
	rows := make([]inventory.HostState, hosts)
	for i := range rows {
		row := inventory.HostState{Name: fmt.Sprintf("node-%05d", i), Node: fmt.Sprintf("node-%05d", i), Up: true, Enabled: true, Stocks: map[string]inventory.Stock{}}
		for class, amount := range medium {
			row.Stocks[class] = inventory.Stock{Total: 36 * amount, Ratio: 1, Used: int64(fillers) * amount}
		}
		for n := range fillers {
			row.Instances = append(row.Instances, inventory.Instance{
				ID: fmt.Sprintf("%s-%02d", row.Name, n), Status: "ACTIVE", Preemptible: true, Holds: medium,
				// Between 10 and 300 minutes (paper 001, section 4), most of them different.
				Launched: figureNow - span.Instant(600+(i*7919+n*104729)%17400),
			})
		}
		rows[i] = row
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// contender is a scheduler of the figure.
type contender struct {
	name string
	plan func(s *inventory.States, r *placing.Request) scheduler.Plan
}

// contenders returns the paper's schedulers: the default one, the preemptible-aware one, and the
// retrying one.
func contenders(tb testing.TB) []contender {
	cost, err := preemption.NewCost("partial_hour", preemption.CostOptions{Period: 3600})
	if err != nil {
		tb.Fatal(err)
	}
	pipeline := func(evictor *preemption.Evictor) scheduler.Pipeline {
		list, err := filters.New(filters.Enabled, filters.Options{Reservation: filters.Reservation{Promises: promises{}}, Evicts: evictor != nil})
		if err != nil {
			tb.Fatal(err)
		}
		return scheduler.Pipeline{
			Filters: list, SubsetSize: 1, Evictor: evictor, Spares: true,
			Weighers: allWeighers(tb, weighers.Ports{Promises: promises{}, Efficiencies: nobodyEfficient(tb), Evictor: evictor, Period: cost}),
		}
	}
	plain, ours := pipeline(nil), pipeline(&preemption.Evictor{Cost: cost})
	return []contender{
		{"plain", func(s *inventory.States, r *placing.Request) scheduler.Plan { return plain.Plan(s, r, figureNow, nil) }},
		{"ours", func(s *inventory.States, r *placing.Request) scheduler.Plan { return ours.Plan(s, r, figureNow, nil) }},
		{"retry", func(s *inventory.States, r *placing.Request) scheduler.Plan {
			if plan := plain.Plan(s, r, figureNow, nil); len(plan.Picks) > 0 {
				return plan
			}
			return ours.Plan(s, r, figureNow, nil)
		}},
	}
}

func nobodyEfficient(tb testing.TB) efficiencies {
	snapshot, err := inventory.NewSnapshot([]inventory.Host{{Name: "nobody"}}, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return efficiencies{snapshot}
}

// bar is how long one scheduler took for each instance.
type bar struct {
	name            string
	mean, deviation float64 // in microseconds
}

// schedule lets a contender place the instances one after the other. The first plan does not
// count: it collects what later plans reuse.
func (c contender) schedule(b *testing.B, s *inventory.States, evicts bool) bar {
	var took []float64
	request := &placing.Request{Resources: medium, Instances: []string{"before"}}
	c.plan(s, request)
	runtime.GC() // the garbage from making the hosts does not count
	for n := range figureInstances {
		request.Instances = []string{fmt.Sprint("new-", n)}
		start := time.Now()
		plan := c.plan(s, request)
		took = append(took, float64(time.Since(start).Nanoseconds())/1000)
		if len(plan.Picks) == 0 {
			if evicts && c.name == "plain" {
				continue // the contender finds no host, which takes time too
			}
			b.Fatal(plan.Decision.Reason)
		}
		if got := len(plan.Picks[0].Victims.Instances); (got == 1) != evicts {
			b.Fatalf("%d victims", got)
		}
		s = s.WithTaken([]inventory.Take{plan.Picks[0].Take})
	}
	one := bar{name: c.name}
	for _, t := range took {
		one.mean += t / figureInstances
	}
	for _, t := range took {
		one.deviation += (t - one.mean) * (t - one.mean) / figureInstances
	}
	one.deviation = math.Sqrt(one.deviation)
	return one
}

// BenchmarkFigure2OfPaper001 prints the numbers of the figure, the time to schedule an instance,
// and draws it into the folder that ALMANAC_FIGURES names.
func BenchmarkFigure2OfPaper001(b *testing.B) {
	sizes := []int{8, 100, 10_000}
	bars := map[int][]bar{}
	for b.Loop() {
		clear(bars)
		for _, hosts := range sizes {
			for _, evicts := range []bool{false, true} {
				fillers := 18
				if evicts {
					fillers = 36
				}
				s := filledHosts(b, hosts, fillers)
				for _, c := range contenders(b) {
					one := c.schedule(b, s, evicts)
					if evicts {
						one.name += ", termination"
					}
					bars[hosts] = append(bars[hosts], one)
				}
			}
		}
	}
	for _, hosts := range sizes {
		for _, one := range bars[hosts] {
			fmt.Printf("%6d hosts  %-20s mean %8.1f µs  deviation %7.1f µs\n", hosts, one.name, one.mean, one.deviation)
		}
	}
	if folder := os.Getenv("ALMANAC_FIGURES"); folder != "" {
		if err := drawFigure(filepath.Join(folder, "preemption-latency"), sizes, bars); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// drawFigure draws a panel for each number of hosts, with one deviation on each side.
func drawFigure(path string, sizes []int, bars map[int][]bar) error {
	var panels []figure.Panel
	for _, hosts := range sizes {
		panel := figure.Panel{
			Title: fmt.Sprintf("%d hosts", hosts), Y: figure.Axis{Label: "time to schedule an instance, µs"},
			Groups: []string{"without", "with termination"},
		}
		half := len(bars[hosts]) / 2
		for n, one := range bars[hosts][:half] {
			with := bars[hosts][half+n]
			panel.Bars = append(panel.Bars, figure.Bars{
				Name: one.name, Values: []float64{one.mean, with.mean}, Deviations: []float64{one.deviation, with.deviation},
			})
		}
		panels = append(panels, panel)
	}
	drawing := figure.Figure{Width: 9, Height: 3.2, Rows: [][]figure.Panel{panels}}
	return drawing.WriteFiles(path)
}

// BenchmarkPlan10000HostsWithEviction is row 5 of docs/performance.md: the plan for one instance
// if a host has room, alternating with the plan if preemptible instances have taken all room of
// the same hosts.
func BenchmarkPlan10000HostsWithEviction(b *testing.B) {
	free, full := filledHosts(b, 10_000, 9), filledHosts(b, 10_000, 36)
	roomy, ours := contenders(b)[1], contenders(b)[1] // two contenders, because each keeps what it collects about its hosts
	request := &placing.Request{Instances: []string{"one"}, Resources: medium, Alternates: 2}
	roomy.plan(free, request)
	ours.plan(full, request)
	var without, with []float64
	for b.Loop() {
		for _, turn := range []struct {
			contender
			s    *inventory.States
			took *[]float64
			want int
		}{{roomy, free, &without, 0}, {ours, full, &with, 1}} {
			start := time.Now()
			plan := turn.plan(turn.s, request)
			*turn.took = append(*turn.took, float64(time.Since(start).Nanoseconds())/1000)
			if len(plan.Picks) != 1 || len(plan.Picks[0].Victims.Instances) != turn.want {
				b.Fatalf("%q: %s", placedAs(plan), plan.Decision.Reason)
			}
		}
	}
	slices.Sort(without)
	slices.Sort(with)
	b.ReportMetric(with[len(with)/2], "µs/plan-p50")
	b.ReportMetric(without[len(without)/2], "µs/without-eviction-p50")
	b.ReportMetric(with[len(with)/2]/without[len(without)/2], "times")
	b.ReportMetric(0, "ns/op")
}
