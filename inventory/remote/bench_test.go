package remote_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory/remote"
)

// What 10,000 hosts cost: when they are new to the caller, when they are not, and
// each time the service reads them.
func BenchmarkTenThousandHosts(b *testing.B) {
	w := inProcess(b)
	s := share(b, w, racks(10_000, 32, 1))
	asking := client(b, w, patience)
	b.Run("new", func(b *testing.B) {
		largest := 0
		for b.Loop() {
			s.source = remote.NewSource(asking, "almanac")
			largest = w.largestIn(func() { s.hosts(b) })
		}
		b.ReportMetric(float64(largest), "bytes")
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
			s.refresh(b)
		}
	})
}
