// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// BenchmarkReservations is row 8 of the figures to reach: 1,024 hosts, load 0.8, first fit, the
// paper's jobs. The booking service books, begins and ends each one. It measures one run alone, and then one
// run for each processor side by side, as experiments run them.
func BenchmarkReservations(b *testing.B) {
	o := Defaults()
	o.Arrivals, o.Load, o.Jobs = Poisson, 0.8, 50_000
	s := usual
	s.Arrivals = Poisson
	for _, runs := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			requests := make([][]request, runs)
			for i := range requests {
				requests[i] = o.requests(s, i)
			}
			accepted := 0.0
			b.ResetTimer()
			for range b.N {
				outcomes, err := sim.Runs(b.Context(), runs, nil, func(ctx context.Context, i int) (outcome, error) {
					return trial(ctx, o.Hosts, calendar.PolicyFirstFit, 0, requests[i])
				})
				if err != nil {
					b.Fatal(err)
				}
				accepted = outcomes[0].Acceptance
			}
			b.ReportMetric(float64(b.N*runs*o.Jobs)/b.Elapsed().Minutes(), "reservations/min")
			b.ReportMetric(accepted, "accepted")
		})
	}
}
