// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkSelectDestinations is row 6 of the figures: a host for one instance, requested over
// RabbitMQ in nova-conductor's form, and claimed in Placement before the answer. Each call to
// Almanac is followed by one to the nova-scheduler behind it, so that both run on the same
// machine. A proxy before Placement measures the time of its answers.
func BenchmarkSelectDestinations(b *testing.B) {
	cloud := labtest.OpenStack(b)
	placement := labtest.Interpose(b, cloud.Placement)
	behind := labtest.SchedulerBehind(b, "placement.endpoint_override="+placement.URL)
	stock := newAsker(b, cloud, placement, behind)
	b.Run(fmt.Sprintf("hosts=%d", len(cloud.Hosts(b))), func(b *testing.B) {
		b.Run("nova-scheduler", func(b *testing.B) {
			b.Run("one caller", func(b *testing.B) { benchmarkOneCaller(b, stock, nil) })
			b.Run("four callers", func(b *testing.B) { benchmarkFourCallers(b, stock) })
		})
		for _, way := range []string{built.Interpose, built.Replace} {
			b.Run(way, func(b *testing.B) {
				startAtTopic(b, cloud, way, behind, "OS_PLACEMENT__ENDPOINT_OVERRIDE="+placement.URL)
				almanac := newAsker(b, cloud, placement, labtest.NovaTransport(b))
				b.Run("one caller", func(b *testing.B) { benchmarkOneCaller(b, almanac, stock) })
				b.Run("four callers", func(b *testing.B) { benchmarkFourCallers(b, almanac) })
				if way == built.Replace { // interpose is as fast as nova-scheduler
					b.Run("32 callers", func(b *testing.B) { benchmarkManyCallers(b, almanac) })
				}
				b.Run("refused at once", func(b *testing.B) { benchmarkRefusal(b, almanac) })
			})
		}
	})
}

// startAtTopic starts an almanacd in the place of nova-scheduler, and returns when it serves the
// topic.
func startAtTopic(t testing.TB, cloud labtest.LabCloud, way, behind string, settings ...string) *built.Service {
	t.Helper()
	s := built.StartOn(t, built.TenHosts, append(built.BesideNova(t, cloud, way, behind), settings...)...)
	built.TakeTopic(t)
	return s
}

// asker requests hosts from the scheduler on the topic.
type asker struct {
	*labtest.Conductor
	cloud     labtest.LabCloud
	placement *labtest.Meddler
}

func newAsker(b *testing.B, cloud labtest.LabCloud, placement *labtest.Meddler, transportURL string) *asker {
	return &asker{labtest.NewConductor(b, transportURL), cloud, placement}
}

// answer holds the cost of one call. Its figures for Placement are valid if no other caller uses
// Placement at that time.
type answer struct {
	took, placement time.Duration
	requests        int // to Placement
}

// ask requests a host for a small instance, for which there is much room, and then deletes its
// allocation, which does not count.
func (a *asker) ask(b *testing.B, admin *labtest.REST) (got answer) {
	id := uuid.NewString()
	begun := time.Now()
	_, err := a.SelectDestinations(b.Context(), labtest.RequestSpec{MemoryMB: 64}, []string{id}, true, true)
	got.took = time.Since(begun)
	got.requests, got.placement = a.placement.Busy(begun)
	if err != nil {
		b.Errorf("request a host: %v", err)
		return got
	}
	if status := admin.Do(http.MethodDelete, "placement", "/allocations/"+id, nil, nil); status != http.StatusNoContent {
		b.Errorf("the instance has a host, but no allocation there: status %d", status)
	}
	return got
}

// askEmpty sends the same request to a server that answers at once.
func (a *asker) askEmpty(b *testing.B) answer {
	begun := time.Now()
	if err := a.CallEmpty(b.Context(), labtest.RequestSpec{MemoryMB: 64}, []string{uuid.NewString()}); err != nil {
		b.Errorf("call a server that does nothing: %v", err)
	}
	return answer{took: time.Since(begun)}
}

// benchmarkOneCaller calls asked, and after each call also an empty RPC and, if it is not nil, beside.
func benchmarkOneCaller(b *testing.B, asked, beside *asker) {
	admin := asked.cloud.REST(b, labtest.Admin)
	for range 5 {
		asked.ask(b, admin) // warms up connections and caches
	}
	asked.ServeEmpty()
	var answers, others, empty []answer
	for b.Loop() {
		answers = append(answers, asked.ask(b, admin))
		empty = append(empty, asked.askEmpty(b))
		if beside != nil {
			others = append(others, beside.ask(b, admin))
		}
	}
	reportTook(b, answers)
	outside := middle(answers, func(a answer) time.Duration { return a.took - a.placement })
	b.ReportMetric(milliseconds(outside), "outside-Placement-p50-ms")
	nothing := middle(empty, answer.whole)
	b.ReportMetric(milliseconds(nothing), "empty-RPC-p50-ms")
	b.ReportMetric(outside.Seconds()/nothing.Seconds(), "outside-Placement/empty-RPC")
	b.ReportMetric(float64(middle(answers, func(a answer) int { return a.requests })), "Placement-requests/op")
	if beside != nil {
		stock, took := middle(others, answer.whole), middle(answers, answer.whole)
		b.ReportMetric(milliseconds(stock), "nova-scheduler-p50-ms")
		b.ReportMetric(milliseconds(took-stock), "added-p50-ms")
		b.ReportMetric(stock.Seconds()/took.Seconds(), "times-faster")
	}
}

// benchmarkRefusal requests a host in an unknown reservation. The refusal comes before any search,
// so what remains is RabbitMQ, both ways, and the decoding of the request.
func benchmarkRefusal(b *testing.B, asked *asker) {
	spec := labtest.RequestSpec{Hints: map[string][]string{"reservation": {"none"}}}
	var answers []answer
	for b.Loop() {
		begun := time.Now()
		if _, err := asked.SelectDestinations(b.Context(), spec, []string{uuid.NewString()}, true, true); err == nil {
			b.Error("a request with an unknown reservation gets a host")
		}
		answers = append(answers, answer{took: time.Since(begun)})
	}
	reportTook(b, answers)
}

// benchmarkFourCallers runs four callers without pauses. The rate is that of callers without other
// work.
func benchmarkFourCallers(b *testing.B, asked *asker) {
	var mu sync.Mutex
	var answers []answer
	var callers sync.WaitGroup
	work := make(chan struct{})
	const number = 4
	for range number {
		admin := asked.cloud.REST(b, labtest.Admin)
		callers.Go(func() {
			for range work {
				got := asked.ask(b, admin)
				mu.Lock()
				answers = append(answers, got)
				mu.Unlock()
			}
		})
	}
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	callers.Wait()
	reportTook(b, answers)
	var all time.Duration
	for _, a := range answers {
		all += a.took
	}
	b.ReportMetric(number*float64(len(answers))/all.Seconds(), "calls/s")
}

func (a answer) whole() time.Duration { return a.took }

func reportTook(b *testing.B, answers []answer) {
	took := make([]time.Duration, 0, len(answers))
	for _, a := range answers {
		took = append(took, a.took)
	}
	slices.Sort(took)
	for _, percent := range []int{50, 90, 99} {
		b.ReportMetric(milliseconds(took[len(took)*percent/100]), fmt.Sprintf("p%d-ms", percent))
	}
}

// middle returns the median of a figure.
func middle[T int | time.Duration](answers []answer, figure func(answer) T) T {
	var all []T
	for _, a := range answers {
		all = append(all, figure(a))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
