// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/remote"
)

// BenchmarkHosts measures a transfer of 10,000 hosts, and of 1,000 with 20 instances each: for
// a caller that does not know them, for one that does, and after each reading of the service.
func BenchmarkHosts(b *testing.B) {
	for name, read := range map[string]func() []inventory.Host{
		"ten thousand":                   func() []inventory.Host { return racks(10_000, 32, 1) },
		"thousand with twenty instances": func() []inventory.Host { return occupied(racks(1000, 32, 1), 20) },
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, read) })
	}
}

func benchmark(b *testing.B, read func() []inventory.Host) {
	w := inProcess(b)
	hosts, again := read(), read()
	s := share(b, w, hosts)
	asking := client(b, w, patience)
	b.Run("new", func(b *testing.B) {
		largest, parts := 0, 0
		for b.Loop() {
			s.source = remote.NewSource(asking, "almanac")
			parts = 0
			w.disturb(replies(func() { parts++ }))
			largest = w.largestIn(func() { s.hosts(b) })
		}
		b.ReportMetric(float64(largest), "bytes")
		b.ReportMetric(float64(parts), "parts")
	})
	b.Run("unchanged", func(b *testing.B) {
		largest := 0
		for b.Loop() {
			largest = w.largestIn(func() { s.hosts(b) })
		}
		b.ReportMetric(float64(largest), "bytes")
	})
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			hosts, again = again, hosts
			s.cloud.set(hosts, nil)
			s.refresh(b)
		}
	})
	b.Run("refresh, one host has changed", func(b *testing.B) {
		for b.Loop() {
			hosts = slices.Clone(hosts)
			hosts[0].InstanceCount++
			s.cloud.set(hosts, nil)
			s.refresh(b)
		}
	})
}
