// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkJobs replays 20,000 jobs of 91 hosts and 3.3 hours in the mean at load 0.8 on 1,024 hosts
// that are always on: under one setting, and under one for each processor side by side, as replays
// run them.
func BenchmarkJobs(b *testing.B) {
	const jobs = 20_000
	chance := rand.New(rand.NewPCG(1, 0))
	upTo := func(least, most float64) int { return int(least * math.Exp(chance.Float64()*math.Log(most/least))) }
	var trace strings.Builder
	trace.WriteString("id,user,submit,runtime,size\n")
	submit := 0.0
	for i := range jobs {
		submit += chance.ExpFloat64() * 91 * 11_875 / (0.8 * 1024)
		fmt.Fprintf(&trace, "%d,%d,%d,%d,%d\n", i, i%48, int(submit), upTo(60, 86_400), upTo(1, 580))
	}
	for _, settings := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("settings=%d", settings), func(b *testing.B) {
			var list []Setting
			for i := range settings {
				list = append(list, named(fmt.Sprint("s", i), nil))
			}
			o := of(b, 1024, trace.String(), list...)
			b.ResetTimer()
			for range b.N {
				if _, err := Run(b.Context(), o, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*settings*jobs)/b.Elapsed().Minutes(), "jobs/min")
			b.ReportMetric(1e6, "jobs/min-goal")
		})
	}
}
