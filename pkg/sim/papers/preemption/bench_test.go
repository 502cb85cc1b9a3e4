// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"testing"
)

// BenchmarkDay simulates a day of a cloud with all its decisions.
func BenchmarkDay(b *testing.B) {
	o := Defaults()
	o.WarmUp = 0
	o.Days = 1
	from, err := o.source(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	requests := int64(0)
	for b.Loop() {
		t, err := o.trial(context.Background(), from, o.settings()[3], 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		requests += t.asked[normal] + t.asked[spot]
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(requests), "µs/request")
}
