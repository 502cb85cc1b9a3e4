// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// BenchmarkMCB8 is row 7 of the figures to reach: MCB8 on the paper's large instances, over all
// slacks and spreads, and how its time grows.
func BenchmarkMCB8(b *testing.B) {
	for _, size := range growth {
		b.Run(fmt.Sprintf("hosts=%d/jobs=%d", size.hosts, size.tasks), func(b *testing.B) {
			var problems []*packing.Problem
			chance := sim.Chance(1, "bench")
			for _, s := range specs(Spec{Hosts: size.hosts, Scaled: true}, size.tasks) {
				problems = append(problems, s.Instance(chance))
			}
			solved := 0
			for i := 0; b.Loop(); i++ {
				if _, err := packing.MCBs[7].Place(b.Context(), problems[i%len(problems)]); err == nil {
					solved++
				}
			}
			b.ReportMetric(float64(solved)/float64(b.N), "solved/op")
		})
	}
}
