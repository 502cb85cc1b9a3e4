// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkBesideBlazar creates and lists leases at OpenStack Blazar and at one almanacd, with the
// same requests, MariaDB and Keystone, on 100 hosts with 3,000 leases. Almanac writes nothing to Nova
// until a lease nears its start; Blazar creates an aggregate and a trust with each.
func BenchmarkBesideBlazar(b *testing.B) {
	const hosts, leases = 100, 3_000
	cloud := labtest.OpenStack(b)
	token := cloud.Token(b, labtest.Demo)
	project := cloud.REST(b, labtest.Demo).ProjectID
	address, database := labtest.Blazar(b)
	ofBlazar := leaseService{url: address, token: token}
	seedBlazar(b, database, project, hosts, leases)
	connection := labtest.Database(b)
	built.Migrate(b, connection)
	s := built.StartOn(b, hostsFile(hosts), "OS_DATABASE__CONNECTION="+connection, "OS_API__AUTH_STRATEGY=keystone",
		"OS_KEYSTONE_AUTHTOKEN__AUTH_URL="+cloud.AuthURL, "OS_KEYSTONE_AUTHTOKEN__USERNAME=almanac",
		"OS_KEYSTONE_AUTHTOKEN__PASSWORD=lab", "OS_KEYSTONE_AUTHTOKEN__PROJECT_NAME=service")
	ofAlmanac := leaseService{url: s.URL + "/v1", token: token}
	ofAlmanac.create(b, 8, leases)
	b.Run("Blazar", func(b *testing.B) { ofBlazar.measure(b, 40, 10) })
	b.Run("Almanac", func(b *testing.B) { ofAlmanac.measure(b, 4_000, 50) })
}

// leaseService serves Blazar's API at an address that ends in /v1.
type leaseService struct{ url, token string }

// measure reports the median time of a list, the creations per second of eight clients, and the time
// of a creation by one.
func (l leaseService) measure(b *testing.B, creations, lists int) {
	for b.Loop() {
		var took []time.Duration
		var found struct{ Leases []struct{ ID string } }
		for range lists {
			begun := time.Now()
			text, err := l.send(b, http.MethodGet, "/leases", nil)
			took = append(took, time.Since(begun))
			if err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(text, &found); err != nil {
				b.Fatal(err)
			}
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "list-ms")
		b.ReportMetric(float64(len(found.Leases)), "leases")
		b.ReportMetric(float64(creations)/l.create(b, 8, creations).Seconds(), "creations/s")
		b.ReportMetric(l.create(b, 1, creations/4).Seconds()*1000/float64(creations/4), "creation-ms")
	}
}

// create creates leases of one host for an hour in the next 90 days, and returns how long that took.
func (l leaseService) create(b *testing.B, clients, creations int) time.Duration {
	b.Helper()
	const minute = "2006-01-02 15:04"
	work := make(chan time.Time)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for start := range work {
				if _, err := l.send(b, http.MethodPost, "/leases", map[string]any{
					"name": "bench", "start_date": start.Format(minute), "end_date": start.Add(time.Hour).Format(minute),
					"events": []any{}, "before_end_date": nil, "reservations": []map[string]any{{
						"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": "",
					}},
				}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	chance := rand.New(rand.NewPCG(uint64(clients), uint64(creations)))
	begun := time.Now()
	for range creations {
		work <- begun.UTC().Add(time.Hour + time.Duration(chance.IntN(90*24*60))*time.Minute)
	}
	close(work)
	all.Wait()
	return time.Since(begun)
}

// send sends a request and returns its answer.
func (l leaseService) send(b *testing.B, method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(b.Context(), method, l.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", l.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json") // Blazar refuses the absence
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	answer, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode >= http.StatusMultipleChoices {
		return nil, cmp.Or(err, fmt.Errorf("%s %s: %s: %.200s", method, path, reply.Status, answer))
	}
	return answer, nil
}

// seedBlazar stores hosts and leases of one host each in Blazar's database. They start one after the
// other in the next 90 days, so that hosts are free at each time.
func seedBlazar(b *testing.B, database, project string, hosts, leases int) {
	b.Helper()
	const day = 24 * 3600
	form, begin := "2006-01-02 15:04:05", time.Now().UTC().Truncate(time.Minute).Add(time.Hour)
	var hostRows, leaseRows, reservations, parts, allocations, events []string
	for host := range hosts {
		hostRows = append(hostRows, fmt.Sprintf("('%d',16,'{}','fake',1000,'host-%05d',65536,500,'host-%05d','','nova')", 1000+host, host, host))
	}
	for i := range leases {
		lease, reserved := uuid.NewString(), uuid.NewString()
		start := begin.Add(time.Duration(i) * 90 * day / time.Duration(leases) * time.Second)
		end := start.Add(time.Hour)
		leaseRows = append(leaseRows, fmt.Sprintf("('%s','seed','u','%s','%s','%s','PENDING')", lease, project, start.Format(form), end.Format(form)))
		reservations = append(reservations, fmt.Sprintf("('%s','%s','%s','physical:host','pending')", reserved, lease, uuid.NewString()))
		parts = append(parts, fmt.Sprintf("('%s','%s','','1-1','','default')", uuid.NewString(), reserved))
		allocations = append(allocations, fmt.Sprintf("('%s','%d','%s')", uuid.NewString(), 1000+i%hosts, reserved))
		for kind, at := range map[string]time.Time{"start_lease": start, "before_end_lease": start, "end_lease": end} {
			events = append(events, fmt.Sprintf("('%s','%s','%s','%s','UNDONE')", uuid.NewString(), lease, kind, at.Format(form)))
		}
	}
	for _, into := range []struct {
		table string
		rows  []string
	}{
		{"computehosts (id, vcpus, cpu_info, hypervisor_type, hypervisor_version, hypervisor_hostname, memory_mb, local_gb, service_name, trust_id, availability_zone)", hostRows},
		{"leases (id, name, user_id, project_id, start_date, end_date, status)", leaseRows},
		{"reservations (id, lease_id, resource_id, resource_type, status)", reservations},
		{"computehost_reservations (id, reservation_id, resource_properties, count_range, hypervisor_properties, before_end)", parts},
		{"computehost_allocations (id, compute_host_id, reservation_id)", allocations},
		{"events (id, lease_id, event_type, time, status)", events},
	} {
		for some := range slices.Chunk(into.rows, 1000) {
			labtest.Execute(b, database, "INSERT INTO "+into.table+" VALUES "+strings.Join(some, ","))
		}
	}
}
