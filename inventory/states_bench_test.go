// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

// largeFleet returns 10,000 hosts with ten instances and 80 traits each, in 100 aggregates,
// and 500 reservations, each with its own resource class on four hosts.
func largeFleet() ([]inventory.HostState, []inventory.Aggregate) {
	const hosts = 10_000
	traits := make([]string, 80)
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%d", i)
	}
	rows, aggregates := make([]inventory.HostState, hosts), make([]inventory.Aggregate, 100)
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
		if i < 2000 {
			rows[i].Stocks[fmt.Sprint("CUSTOM_ALMANAC_RESERVATION_", i/4)] = inventory.Stock{Total: 4, Ratio: 1}
		}
		a := &aggregates[i%len(aggregates)]
		a.Hosts = append(a.Hosts, rows[i].Name)
	}
	return rows, aggregates
}

func BenchmarkStatesOf10000Hosts(b *testing.B) {
	rows, aggregates := largeFleet()
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
			h, err := board.Place(b.Context(), "project", func(*inventory.States) ([]inventory.Take, error) { return take, nil })
			if err != nil {
				b.Fatal(err)
			}
			h.Confirm()
		}
	})
}

// BenchmarkBoardOf10000Hosts measures what runs under the lock of a live state with 1,000
// claims.
func BenchmarkBoardOf10000Hosts(b *testing.B) {
	rows, aggregates := largeFleet()
	s, board := states(b, rows, aggregates...), inventory.NewLiveState()
	board.Replace(board.BeginRead(), s, nil)
	plan := func(host int, instance string) *inventory.Hold {
		h, err := board.Place(b.Context(), "project", func(*inventory.States) ([]inventory.Take, error) {
			return []inventory.Take{{Host: host, Instance: instance, Resources: amounts{"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}}}, nil
		})
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	for i := range 1000 {
		plan(i*7, fmt.Sprint("held-", i))
	}
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
