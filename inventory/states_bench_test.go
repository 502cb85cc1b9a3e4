// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/tests/growth"
)

// largeFleet returns hosts with ten instances and 80 traits each, in aggregates of 100, and a
// reservation for each 20 hosts, with its own resource class on four of them.
func largeFleet(hosts int) ([]inventory.HostState, []inventory.Aggregate) {
	traits := make([]string, 80)
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%d", i)
	}
	rows, aggregates := make([]inventory.HostState, hosts), make([]inventory.Aggregate, hosts/100)
	for i := range aggregates {
		aggregates[i].UUID = fmt.Sprint("uuid-", i)
	}
	for i := range rows {
		rows[i] = inventory.HostState{
			Name: fmt.Sprintf("cmp-%05d", i), Node: fmt.Sprintf("cmp-%05d.example.org", i), Zone: fmt.Sprint("zone-", i%3),
			Up: true, Enabled: true, Traits: traits, Instances: make([]inventory.Instance, 10),
			Stocks: stocks{
				"VCPU": {Total: 64, Ratio: 4, Used: 20}, "MEMORY_MB": {Total: 262144, Ratio: 1, Used: 81920}, "DISK_GB": {Total: 2000, Ratio: 1, Used: 200},
			},
		}
		if i < hosts/5 {
			rows[i].Stocks[fmt.Sprint("CUSTOM_ALMANAC_RESERVATION_", i/4)] = inventory.Stock{Total: 4, Ratio: 1}
		}
		a := &aggregates[i%len(aggregates)]
		a.Hosts = append(a.Hosts, rows[i].Name)
	}
	return rows, aggregates
}

func BenchmarkStatesOf10000Hosts(b *testing.B) {
	rows, aggregates := largeFleet(10_000)
	s := states(b, rows, aggregates...)
	take := []inventory.Take{{Host: 5000, Instance: "x", Resources: amounts{"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}}}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			states(b, rows, aggregates...)
		}
	})
	b.Run("with one take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.WithTaken(take)
		}
	})
	b.Run("column of a rare class", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.WithTaken(take).Column("CUSTOM_ALMANAC_RESERVATION_7")
		}
	})
	b.Run("place and settle", func(b *testing.B) {
		b.ReportAllocs()
		board := inventory.NewLiveState()
		board.Replace(board.BeginRead(), s, nil)
		for b.Loop() {
			h, err := board.Place(b.Context(), "project", func(*inventory.States) ([]inventory.Take, error) { return take, nil }, nil)
			if err != nil {
				b.Fatal(err)
			}
			h.Confirm()
		}
	})
}

// claimedFleet returns a live state of a large fleet, the rows and the states of its hosts, and a
// function that enters a plan for one instance. A tenth of the hosts has a claim each.
func claimedFleet(b *testing.B, hosts int) (board *inventory.LiveState, rows []inventory.HostState, s *inventory.States, plan func(host int, instance string) *inventory.Hold) {
	rows, aggregates := largeFleet(hosts)
	s, board = states(b, rows, aggregates...), inventory.NewLiveState()
	board.Replace(board.BeginRead(), s, nil)
	plan = func(host int, instance string) *inventory.Hold {
		h, err := board.Place(b.Context(), "project", func(*inventory.States) ([]inventory.Take, error) {
			return []inventory.Take{{Host: host, Instance: instance, Resources: amounts{"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}}}, nil
		}, nil)
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	for i := range hosts / 10 {
		plan(i*7, fmt.Sprint("held-", i))
	}
	return board, rows, s, plan
}

func BenchmarkGrowth(b *testing.B) {
	growth.Measure(b, "plan entered and undone", func(b *testing.B, hosts int) growth.Run {
		_, _, _, plan := claimedFleet(b, hosts)
		return growth.Same(func() { plan(5, "undone").Undo() })
	})
}

// BenchmarkBoardOf10000Hosts measures what runs under the lock of a live state with 1,000
// claims.
func BenchmarkBoardOf10000Hosts(b *testing.B) {
	board, rows, s, plan := claimedFleet(b, 10_000)
	b.Run("a reading is taken", func(b *testing.B) {
		for b.Loop() {
			board.Replace(board.BeginRead(), s, nil)
		}
	})
	b.Run("a host is corrected", func(b *testing.B) {
		for b.Loop() {
			board.CorrectHost(board.BeginRead(), "cmp-00007", rows[7].Stocks, nil)
		}
	})
	b.Run("a plan is undone", func(b *testing.B) {
		for b.Loop() {
			plan(5, "undone").Undo()
		}
	})
	b.Run("the unclear hosts are asked for", func(b *testing.B) {
		for b.Loop() {
			board.UncertainHosts()
		}
	})
}
