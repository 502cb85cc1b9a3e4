// SPDX-License-Identifier: Apache-2.0

package preemption_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

var options = preemption.CostOptions{Period: 3600, PriceSpec: "price", PrioritySpec: "priority"}

func costNamed(tb interface{ Fatal(args ...any) }, name string) preemption.Cost {
	cost, err := preemption.NewCost(name, options)
	if err != nil {
		tb.Fatal(err)
	}
	return cost
}

// custom is a cost whose order the Evictor does not know.
type custom struct{ preemption.Cost }

// drawHosts draws hosts with many equal values, times around now, and instances that cannot all
// be evicted.
func drawHosts(t *rapid.T, now span.Instant) []inventory.HostState {
	number := func(least, most int64, label string) int64 { return rapid.Int64Range(least, most).Draw(t, label) }
	rows := make([]inventory.HostState, number(1, 12, "hosts"))
	for i := range rows {
		used := map[string]int64{}
		for n := range number(0, 6, "instances") {
			one := inventory.Instance{
				ID: fmt.Sprintf("i-%d-%d", i, (n*5)%7), Status: rapid.SampledFrom([]string{"ACTIVE", "ACTIVE", "ACTIVE", "BUILD"}).Draw(t, "status"),
				Preemptible: number(0, 4, "normal") > 0, Locked: number(0, 9, "locked") == 0,
				Holds:    map[string]int64{"VCPU": number(1, 3, "vcpu"), "MEMORY_MB": number(1, 4, "memory")},
				Launched: drawTime(t, now), Created: drawTime(t, now),
				Flavor: inventory.Flavor{ExtraSpecs: map[string]string{"price": rapid.SampledFrom([]string{"", "0.1", "2", "x"}).Draw(t, "price"), "priority": fmt.Sprint(number(0, 2, "priority"))}},
			}
			if number(0, 5, "device") == 0 {
				one.Holds["CUSTOM_X"] = 1
			}
			for class, amount := range one.Holds {
				used[class] += amount
			}
			rows[i].Instances = append(rows[i].Instances, one)
		}
		rows[i].Name = fmt.Sprintf("h%02d", i)
		rows[i].Stocks = map[string]inventory.Stock{
			"VCPU":      {Total: used["VCPU"] + number(0, 2, "vcpus free"), Ratio: 1, Used: used["VCPU"]},
			"MEMORY_MB": {Total: used["MEMORY_MB"] + number(0, 3, "memory free"), Ratio: 1, Used: used["MEMORY_MB"], Max: number(3, 12, "most")},
			"CUSTOM_X":  {Total: 2, Ratio: 1, Used: used["CUSTOM_X"]},
		}
	}
	return rows
}

func drawTime(t *rapid.T, now span.Instant) span.Instant {
	if rapid.IntRange(0, 5).Draw(t, "no time") == 0 {
		return 0
	}
	if rapid.Bool().Draw(t, "any time") {
		return now - span.Instant(rapid.Int64Range(0, 9000).Draw(t, "ago"))
	}
	return now + span.Instant(rapid.SampledFrom([]int64{-90000, -7200, -3601, -3600, -3599, -60, -59, -1, 0, 1, 30}).Draw(t, "time"))
}

func drawResources(t *rapid.T) map[string]int64 {
	resources := map[string]int64{
		"VCPU": rapid.Int64Range(0, 6).Draw(t, "vcpu wanted"), "MEMORY_MB": rapid.Int64Range(0, 8).Draw(t, "memory wanted"),
	}
	if rapid.IntRange(0, 4).Draw(t, "device wanted") == 0 {
		resources["CUSTOM_X"] = 2
	}
	return resources
}

// upToTheBar returns what Costs should return, computed from the Victims of each host.
func upToTheBar(e *preemption.Evictor, s *inventory.States, hosts []int, resources map[string]int64, now span.Instant, most int) []int64 {
	costs := make([]int64, len(hosts))
	var known []int64
	for k, i := range hosts {
		v, ok := e.Victims(s, i, resources, now)
		if costs[k] = v.Cost; ok {
			known = append(known, v.Cost)
		} else {
			costs[k] = math.MaxInt64
		}
	}
	slices.Sort(known)
	bar := int64(0)
	if most = min(most, len(known)); most > 0 {
		bar = known[most-1]
	}
	for k := range costs {
		costs[k] = min(costs[k], bar)
	}
	return costs
}

// checkCosts checks Costs of some hosts against Victims of each.
func checkCosts(t *rapid.T, e *preemption.Evictor, s *inventory.States, now span.Instant) {
	t.Helper()
	resources := drawResources(t)
	var hosts []int
	for i := range s.Len() {
		if rapid.IntRange(0, 3).Draw(t, "left out") > 0 {
			hosts = append(hosts, i)
		}
	}
	most := rapid.IntRange(1, 4).Draw(t, "most")
	got := make([]int64, len(hosts))
	e.Costs(s, hosts, resources, now, most, got)
	if diff := cmp.Diff(upToTheBar(e, s, hosts, resources, now, most), got); diff != "" && len(hosts) > 0 {
		t.Fatalf("hosts %v at %d with the %d cheapest for %v: %s", hosts, now, most, resources, diff)
	}
}

func TestCostsAreThoseOfTheVictimsUpToTheBar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := now
		cost := costNamed(t, rapid.SampledFrom([]string{"partial_hour", "running_time", "age", "price", "priority"}).Draw(t, "cost"))
		if rapid.IntRange(0, 5).Draw(t, "custom") == 0 {
			cost = custom{cost}
		}
		e := &preemption.Evictor{Cost: cost}
		read, err := inventory.NewStates(drawHosts(t, now), nil)
		if err != nil {
			t.Fatal(err)
		}
		board := inventory.NewLiveState()
		board.Replace(board.BeginRead(), read, nil)
		var holds []*inventory.Hold
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			s := board.Load()
			checkCosts(t, e, s, now)
			i := rapid.IntRange(0, s.Len()-1).Draw(t, "host")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0: // a placement makes room
				resources := drawResources(t)
				v, ok := e.Victims(s, i, resources, now)
				if !ok {
					break
				}
				take := inventory.Take{Host: i, Instance: fmt.Sprint("new-", step), Resources: resources}
				for _, one := range v.Instances {
					take.Victims = append(take.Victims, one.ID)
				}
				hold, err := board.Place(t.Context(), "project", func(*inventory.States) ([]inventory.Take, error) { return []inventory.Take{take}, nil }, nil)
				if err != nil {
					t.Fatal(err)
				}
				holds = append(holds, hold)
			case 1:
				stocks := map[string]inventory.Stock{"VCPU": {Total: 9, Ratio: 1, Used: rapid.Int64Range(0, 12).Draw(t, "used")}, "MEMORY_MB": {Total: 20, Ratio: 1, Used: 18}}
				holds := map[string]map[string]int64{}
				for _, one := range s.InstancesOn(i) {
					holds[one.ID] = map[string]int64{"VCPU": rapid.Int64Range(1, 4).Draw(t, "held"), "MEMORY_MB": 3}
				}
				board.CorrectHost(board.BeginRead(), s.Host(i).Name, stocks, holds)
			case 2:
				now += span.Instant(rapid.SampledFrom([]int64{-40, -3000, 1, 59, 60, 3600, 5000}).Draw(t, "passes"))
			case 3:
				if len(holds) > 0 {
					holds[0].Undo()
					holds = holds[1:]
				}
			case 4:
				again, err := inventory.NewStates(drawHosts(t, now), nil)
				if err != nil {
					t.Fatal(err)
				}
				board.Replace(board.BeginRead(), again, nil)
			}
		}
		checkCosts(t, e, board.Load(), now)
	})
}

func TestCostsOfManyFullHosts(t *testing.T) {
	s := fullHosts(t, 300)
	var hosts []int
	for i := range s.Len() {
		hosts = append(hosts, i)
	}
	got := make([]int64, len(hosts))
	for _, name := range []string{"partial_hour", "running_time"} {
		e := &preemption.Evictor{Cost: costNamed(t, name)}
		for size := int64(1); size <= 32; size *= 2 {
			resources := map[string]int64{"VCPU": size, "MEMORY_MB": 2048 * size, "DISK_GB": 20 * size}
			e.Costs(s, hosts, resources, now, 10, got)
			if diff := cmp.Diff(upToTheBar(e, s, hosts, resources, now, 10), got); diff != "" {
				t.Errorf("%s, %d VCPU:\n%s", name, size, diff)
			}
		}
	}
}

// If the clock is set back, launches since then are in the future.
func TestCostsAfterTheClockWasSetBack(t *testing.T) {
	s := statesOf(t,
		paperHost("A", large("a", 10), normal(large("n", 0))), paperHost("B", large("b", 20), normal(large("o", 0))), paperHost("C", large("c", 90), normal(large("p", 0))))
	e := &preemption.Evictor{Cost: costNamed(t, "partial_hour")}
	for _, tc := range []struct {
		minutes int64
		want    []int64
	}{
		{0, []int64{600, 1200, 1200}},
		{-15, []int64{0, 300, 300}},
		{31, []int64{2460, 2460, 60}},
	} {
		got := make([]int64, 3)
		e.Costs(s, []int{0, 1, 2}, large("", 0).Holds, now+span.Instant(60*tc.minutes), 2, got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%d minutes later: %s", tc.minutes, diff)
		}
	}
}

// fullHosts returns a cloud of hosts without room, each with ten preemptible instances of four
// flavors.
func fullHosts(tb testing.TB, hosts int) *inventory.States {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]inventory.HostState, hosts)
	for i := range rows {
		sum := map[string]int64{}
		for n := range 10 {
			size := r.IntN(4)
			one := inventory.Instance{
				ID: fmt.Sprintf("%08x-%d", r.Uint32(), n), Status: "ACTIVE", Preemptible: true,
				Launched: span.Instant(1_700_000_000 - r.Int64N(30*24*3600)),
				Holds:    map[string]int64{"VCPU": 1 << size, "MEMORY_MB": 2048 << size, "DISK_GB": 20 * int64(size+1)},
			}
			for class, amount := range one.Holds {
				sum[class] += amount
			}
			rows[i].Instances = append(rows[i].Instances, one)
		}
		rows[i].Name = fmt.Sprintf("node-%05d", i)
		rows[i].Stocks = map[string]inventory.Stock{}
		for class, amount := range sum {
			rows[i].Stocks[class] = inventory.Stock{Total: amount, Ratio: 1, Used: amount}
		}
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkCosts10000Hosts(b *testing.B) {
	s := fullHosts(b, 10_000)
	var hosts []int
	for i := range s.Len() {
		hosts = append(hosts, i)
	}
	costs := make([]int64, len(hosts))
	for _, size := range []int64{1, 2, 4, 8, 16, 32} {
		resources := map[string]int64{"VCPU": size, "MEMORY_MB": 2048 * size, "DISK_GB": 20 * size}
		for _, name := range []string{"partial_hour", "running_time"} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				e := &preemption.Evictor{Cost: costNamed(b, name)}
				e.Costs(s, hosts, resources, now, 64, costs)
				for b.Loop() {
					e.Costs(s, hosts, resources, now, 64, costs)
				}
			})
		}
	}
	resources := map[string]int64{"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}
	b.Run("100 hosts have changed", func(b *testing.B) {
		e := &preemption.Evictor{Cost: costNamed(b, "partial_hour")}
		e.Costs(s, hosts, resources, now, 64, costs)
		var takes []inventory.Take
		for i := range 100 {
			takes = append(takes, inventory.Take{Host: i * 97, Instance: fmt.Sprint("new-", i), Victims: []string{s.InstancesOn(i * 97)[0].ID}, Resources: map[string]int64{"VCPU": 1}})
		}
		after := s.WithTaken(takes)
		for b.Loop() {
			e.Costs(after, hosts, resources, now, 64, costs)
		}
	})
	b.Run("without an order", func(b *testing.B) {
		e := &preemption.Evictor{Cost: custom{costNamed(b, "partial_hour")}}
		for b.Loop() {
			e.Costs(s, hosts, resources, now, 64, costs)
		}
	})
	b.Run("the order anew", func(b *testing.B) {
		for b.Loop() {
			e := &preemption.Evictor{Cost: costNamed(b, "partial_hour")}
			e.Costs(s, hosts, resources, now, 64, costs)
		}
	})
}
