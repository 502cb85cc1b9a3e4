// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	source "github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// The size of a cloud that no lab has. The stand-ins for Nova and Placement return as much
// data as the real services would.
const (
	manyHosts   = 1_000
	manyServers = 10_000
)

type anyone struct{}

func (anyone) Token(context.Context, string) (string, error) { return "token", nil }
func (anyone) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", nil
}

// bulk answers as a Nova and a Placement of that size.
type bulk struct {
	answers map[string][]byte // by path
	servers []object
}

func newBulk() *bulk {
	b := &bulk{answers: map[string][]byte{}}
	traits := make([]string, 80) // as many as libvirt reports
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%d", i)
	}
	var services, hypervisors, providers []object
	summaries := object{}
	for i := range manyHosts {
		name, id := fmt.Sprintf("cmp-%04d", i), fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)
		services = append(services, object{"id": "s" + id, "host": name, "binary": "nova-compute", "zone": "nova", "status": "enabled", "state": "up"})
		hypervisors = append(hypervisors, object{"id": id, "hypervisor_hostname": name, "hypervisor_type": "QEMU", "service": object{"host": name}})
		providers = append(providers, object{"uuid": id, "name": name, "generation": 7, "root_provider_uuid": id})
		summaries[id] = object{"traits": traits, "resources": object{
			"VCPU": object{"capacity": 256, "used": 10}, "MEMORY_MB": object{"capacity": 262144, "used": 40960}, "DISK_GB": object{"capacity": 2000, "used": 200}}}
		b.put("/resource_providers/"+id+"/inventories", object{"inventories": object{
			"VCPU":      object{"total": 64, "reserved": 0, "allocation_ratio": 4.0},
			"MEMORY_MB": object{"total": 262144, "reserved": 0, "allocation_ratio": 1.0},
			"DISK_GB":   object{"total": 2000, "reserved": 0, "allocation_ratio": 1.0}}})
	}
	held := make([]object, manyHosts)
	for i := range manyServers {
		if held[i%manyHosts] == nil {
			held[i%manyHosts] = object{}
		}
		held[i%manyHosts][fmt.Sprintf("%08d-1111-0000-0000-000000000000", i)] = object{"resources": object{"VCPU": 1, "MEMORY_MB": 4096, "DISK_GB": 20}}
		b.servers = append(b.servers, object{
			"id": fmt.Sprintf("%08d-1111-0000-0000-000000000000", i), "name": "server", "tenant_id": "p", "user_id": "u", "status": "ACTIVE",
			"OS-EXT-SRV-ATTR:host": fmt.Sprintf("cmp-%04d", i%manyHosts), "created": "2026-11-01T00:00:00Z", "updated": "2026-11-01T00:00:00Z",
			"OS-SRV-USG:launched_at": "2026-11-01T00:00:00.000000", "image": object{"id": "i"}, "metadata": object{"role": "web"},
			"flavor": object{"vcpus": 1, "ram": 4096, "disk": 20, "ephemeral": 0, "swap": 0, "original_name": "m1.medium", "extra_specs": object{}},
		})
	}
	for i, consumers := range held {
		b.put(fmt.Sprintf("/resource_providers/%08d-0000-0000-0000-000000000000/allocations", i), object{"allocations": consumers})
	}
	b.put("/v2.1/", object{"version": object{"version": "2.100", "min_version": "2.1"}})
	b.put("/", object{"versions": []object{{"max_version": "1.39", "min_version": "1.0"}}})
	b.put("/v2.1/os-services", object{"services": services})
	b.put("/v2.1/os-aggregates", object{"aggregates": []object{}})
	b.put("/v2.1/os-hypervisors/detail", object{"hypervisors": hypervisors})
	b.put("/resource_providers", object{"resource_providers": providers})
	b.put("/allocation_candidates", object{"allocation_requests": []object{}, "provider_summaries": summaries})
	return b
}

func (b *bulk) put(path string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	b.answers[path] = text
}

func (b *bulk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/os-hypervisors/detail") && r.URL.Query().Has("marker") {
		_, _ = io.WriteString(w, `{"hypervisors": []}`)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/servers/detail") {
		_, _ = w.Write(b.answers[r.URL.Path])
		return
	}
	if r.URL.Query().Has("changes-since") {
		_, _ = io.WriteString(w, `{"servers": []}`)
		return
	}
	first := 0
	if marker := r.URL.Query().Get("marker"); marker != "" {
		n, _ := strconv.Atoi(marker[:8])
		first = n + 1
	}
	last := min(first+1000, len(b.servers))
	page := object{"servers": b.servers[first:last]}
	if last < len(b.servers) {
		page["servers_links"] = []object{{"rel": "next", "href": "x"}}
	}
	_ = json.NewEncoder(w).Encode(page)
}

// bulkSource returns a source of the many hosts on which the instances of the given projects
// are preemptible. All instances belong to project p.
func bulkSource(b *testing.B, projects ...string) (*source.Source, *clock) {
	b.Helper()
	server := httptest.NewServer(newBulk())
	b.Cleanup(server.Close)
	compute, err := nova.New(anyone{}, openstack.Options{Override: server.URL + "/v2.1"})
	if err != nil {
		b.Fatal(err)
	}
	place, err := placement.New(anyone{}, openstack.Options{Override: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	at := &clock{at: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	return source.NewSource(compute, place, source.Options{
		Preemptible: inventory.PreemptibleRule{Projects: projects}, LiveState: inventory.NewLiveState(), Now: at.now, Log: slog.New(slog.DiscardHandler),
	}), at
}

// readAll reads the hosts and returns the number of calls.
func readAll(b *testing.B, s *source.Source) int64 {
	b.Helper()
	before := s.Calls()
	hosts, err := s.Hosts(b.Context())
	if err != nil || len(hosts) != manyHosts || len(hosts[0].Instances) != manyServers/manyHosts {
		b.Fatalf("%d hosts, %v", len(hosts), err)
	}
	return s.Calls() - before
}

// BenchmarkReadingOf1000Hosts measures readings with 10,000 instances: the first one, a full
// one, and one in between without changes; then the same with preemptible instances only.
// The stand-ins for Nova and Placement take no time.
func BenchmarkReadingOf1000Hosts(b *testing.B) {
	b.Run("normal", func(b *testing.B) { benchmarkReadings(b, manyHosts) })
	b.Run("preemptible", func(b *testing.B) { benchmarkReadings(b, 2*manyHosts, "p") })
}

// benchmarkReadings reads hosts. The first reading makes that many calls beside its lists.
func benchmarkReadings(b *testing.B, first int64, projects ...string) {
	report := func(b *testing.B, calls, most int64) {
		b.ReportMetric(float64(calls), "calls")
		if calls > most {
			b.Errorf("%d calls, want at most %d", calls, most)
		}
	}
	b.Run("first", func(b *testing.B) {
		var calls int64
		for b.Loop() {
			b.StopTimer()
			s, _ := bulkSource(b, projects...)
			b.StartTimer()
			calls = readAll(b, s)
		}
		report(b, calls, first+25)
	})
	for name, tc := range map[string]struct {
		after time.Duration
		most  int64
	}{"everything": {time.Hour, 20}, "in between": {time.Millisecond, 5}} {
		b.Run(name, func(b *testing.B) {
			s, at := bulkSource(b, projects...)
			readAll(b, s)
			var calls int64
			for b.Loop() {
				at.advance(tc.after)
				calls = readAll(b, s)
			}
			report(b, calls, tc.most)
		})
	}
}
