// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkInterpose measures what interpose adds to the time of a request. A stand-in for the
// nova-scheduler behind answers at once, so that its own time, some hundred milliseconds and never
// the same, does not hide the rest. Three calls take turns: to the stand-in directly, through a bare
// relay, and through almanacd.
func BenchmarkInterpose(b *testing.B) {
	cloud := labtest.OpenStack(b)
	standIn := labtest.RabbitMQ(b)
	behind := labtest.NewConductor(b, standIn)
	nova := labtest.NewConductor(b, labtest.NovaTransport(b))
	spec := labtest.RequestSpec{MemoryMB: 64}
	first := uuid.NewString()
	behind.StandIn(nova, spec, first)
	cloud.REST(b, labtest.Admin).Must(http.MethodDelete, "placement", "/allocations/"+first, nil, nil)
	b.Run(fmt.Sprintf("hosts=%d", len(cloud.Hosts(b))), func(b *testing.B) {
		startAtTopic(b, cloud, built.Interpose, standIn)
		nova.ServeRelay(behind)
		ask := map[string]func(id []string) error{
			"direct": func(id []string) error {
				_, err := behind.SelectDestinations(b.Context(), spec, id, true, true)
				return err
			},
			"relay": func(id []string) error { return nova.CallRelay(b.Context(), spec, id) },
			built.Interpose: func(id []string) error {
				_, err := nova.SelectDestinations(b.Context(), spec, id, true, true)
				return err
			},
		}
		took := map[string][]answer{}
		turn := func() {
			for _, way := range []string{"direct", "relay", built.Interpose} {
				begun := time.Now()
				if err := ask[way]([]string{uuid.NewString()}); err != nil {
					b.Errorf("request a host, %s: %v", way, err)
				}
				took[way] = append(took[way], answer{took: time.Since(begun)})
			}
		}
		for range 5 {
			turn() // warms up connections and caches
		}
		clear(took)
		for b.Loop() {
			turn()
		}
		reportTook(b, took[built.Interpose])
		direct, relay, whole := middle(took["direct"], answer.whole), middle(took["relay"], answer.whole), middle(took[built.Interpose], answer.whole)
		b.ReportMetric(milliseconds(direct), "direct-p50-ms")
		b.ReportMetric(milliseconds(relay), "relay-p50-ms")
		b.ReportMetric(milliseconds(whole-relay), "added-to-relay-p50-ms")
		b.ReportMetric(milliseconds(whole-direct), "added-p50-ms")
	})
}
