// SPDX-License-Identifier: Apache-2.0

// Package growth measures what a path costs while the number of hosts grows. A package with a path
// measures it in its BenchmarkGrowth.
package growth

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Hosts are the numbers of hosts. The load of a cloud is in proportion to them: each host has as many
// claims, instances or machines that wait as in any other size.
var Hosts = []int{100, 300, 1000, 3000, 10_000}

// ClaimsPerHost is the number of claims for each host of a calendar.
const ClaimsPerHost = 10

// Run prepares one run of a path and returns it. The time of the preparation does not count.
type Run func() (path func())

// Same returns a run that needs no preparation.
func Same(path func()) Run { return func() func() { return path } }

// Measure measures a path in a cloud of each size, as the benchmark path/hosts=N. prepare makes the
// cloud. ns/op is the median CPU time of the runs, which other work on the machine changes little. The
// first run does not count, since it collects what the later ones reuse.
func Measure(b *testing.B, path string, prepare func(b *testing.B, hosts int) Run) {
	for _, hosts := range Hosts {
		b.Run(fmt.Sprintf("%s/hosts=%d", path, hosts), func(b *testing.B) {
			next := prepare(b, hosts)
			next()()
			runtime.GC() // the garbage from making the cloud does not count
			var took []int64
			for b.Loop() {
				run := next()
				begin := CPUTime(b)
				run()
				took = append(took, CPUTime(b)-begin)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "ns/op")
		})
	}
}

// CPUTime returns the CPU time of all threads of this process until now, in ns.
func CPUTime(b testing.TB) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return t.Nano()
}
