// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// benchmarkManyCallers alternates between 32 callers who request hosts, 32 writers of the same
// allocations to Placement, one consumer in each request, and four writers of eight consumers in
// each request, which is what Placement can do. The times do not include that the allocations are
// deleted.
func benchmarkManyCallers(b *testing.B, asked *asker) {
	const callers, each, writers, together = 32, 4, 4, 8
	crowd := make([]*labtest.REST, callers)
	for i := range crowd {
		crowd[i] = asked.cloud.REST(b, labtest.Admin)
	}
	providers := asked.providers(b, crowd[0])
	writes := func(admin *labtest.REST, consumers []string) { write(b, admin, consumers, providers) }
	var calls, single, joint time.Duration
	var answers []time.Duration
	rounds := max(1, b.N/(callers*each))
	for range rounds {
		took, times := inCrowd(b, crowd, each, 1, func(_ *labtest.REST, consumers []string) {
			if _, err := asked.SelectDestinations(b.Context(), labtest.RequestSpec{MemoryMB: 64}, consumers, true, true); err != nil {
				b.Errorf("request a host: %v", err)
			}
		})
		calls, answers = calls+took, append(answers, times...)
		took, _ = inCrowd(b, crowd, each, 1, writes)
		single += took
		took, _ = inCrowd(b, crowd[:writers], callers*each/writers/together, together, writes)
		joint += took
	}
	reportSpread(b, answers, "")
	all := float64(rounds * callers * each)
	b.ReportMetric(all/calls.Seconds(), "calls/s")
	b.ReportMetric(all/single.Seconds(), "single-writes/s")
	b.ReportMetric(all/joint.Seconds(), "writes-of-eight/s")
	b.ReportMetric(single.Seconds()/calls.Seconds(), "calls/single-write")
}

// inCrowd is inParallel for a crowd: each time, a member does something for several new consumers.
// Afterwards it deletes the consumers' allocations.
func inCrowd(b *testing.B, crowd []*labtest.REST, each, together int, do func(admin *labtest.REST, consumers []string)) (took time.Duration, times []time.Duration) {
	var mu sync.Mutex
	var used []string
	took, times = inParallel(len(crowd), each, func(member int) {
		var ids []string
		for range together {
			ids = append(ids, uuid.NewString())
		}
		do(crowd[member], ids)
		mu.Lock()
		defer mu.Unlock()
		used = append(used, ids...)
	})
	for _, id := range used {
		if status := crowd[0].Do(http.MethodDelete, "placement", "/allocations/"+id, nil, nil); status != http.StatusNoContent {
			b.Errorf("consumer %s has no allocation: status %d", id, status)
		}
	}
	return took, times
}

// write writes an allocation for each consumer, all in one request, and repeats it as long as other
// writers of the same provider are in the way.
func write(b *testing.B, admin *labtest.REST, consumers, providers []string) {
	body := map[string]any{}
	for _, consumer := range consumers {
		provider := providers[rand.IntN(len(providers))]
		body[consumer] = map[string]any{
			"allocations": map[string]any{provider: map[string]any{"resources": map[string]int{"VCPU": 1, "MEMORY_MB": 64}}},
			"project_id":  admin.ProjectID, "user_id": admin.ProjectID, "consumer_generation": nil, "consumer_type": "INSTANCE",
		}
	}
	status := http.StatusConflict
	for status == http.StatusConflict {
		status = admin.Do(http.MethodPost, "placement", "/allocations", body, nil)
	}
	if status != http.StatusNoContent {
		b.Errorf("write %d allocations: status %d", len(consumers), status)
	}
}

// providers returns the ids of the cloud's resource providers.
func (a *asker) providers(b *testing.B, admin *labtest.REST) (ids []string) {
	var body struct {
		Providers []struct{ UUID string } `json:"resource_providers"`
	}
	admin.Must(http.MethodGet, "placement", "/resource_providers", nil, &body)
	for _, p := range body.Providers {
		ids = append(ids, p.UUID)
	}
	if len(ids) == 0 {
		b.Fatal("Placement has no providers")
	}
	return ids
}
