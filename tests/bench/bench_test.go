// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkPostReservation is row 3 of the figures: POST /v1/reservations at one almanacd on
// MariaDB. The answer follows the commit to disk. One client shows the time of a booking, eight and
// 64 show the rate beside that of the bare transaction, and the database counts the statements. The
// other sizes show the cost of a booking as the cloud grows.
func BenchmarkPostReservation(b *testing.B) {
	for _, size := range []struct{ hosts, reservations int }{
		{1_000, 3_000},
		{100, 1_000}, {1_000, 1_000}, {10_000, 1_000},
		{1_000, 10_000}, {10_000, 100_000},
	} {
		b.Run(fmt.Sprintf("hosts=%d/reservations=%d", size.hosts, size.reservations), func(b *testing.B) {
			database := labtest.StartMariaDB(b)
			connection := database.URL("almanac")
			built.Migrate(b, connection)
			seedReservations(b, database.DSN("almanac"), size.hosts, size.reservations)
			s := built.StartOn(b, hostsFile(size.hosts), "OS_DATABASE__CONNECTION="+connection)
			b.Run("one client", func(b *testing.B) { benchmarkOne(b, s, database) })
			bare := newBareBooking(b, s, database, size.hosts, size.reservations)
			for _, clients := range []int{8, 64} {
				b.Run(fmt.Sprintf("%d clients", clients), func(b *testing.B) { benchmarkBesideBare(b, s, bare, database, clients) })
			}
		})
	}
}

func hostsFile(n int) string {
	return fmt.Sprintf("hosts:\n  - name: host-[00001-%05d]\n    vcpus: 16\n    memory_mb: 65536\n    disk_gb: 500\n", n)
}

// booker returns a function that sends a booking at a random time in the next 90 days.
func booker(b *testing.B, s *built.Service, seed uint64) func() time.Duration {
	c, err := client.New(client.Options{URL: s.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		b.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(seed, 7))
	return func() time.Duration {
		begin := time.Now().Add(time.Hour + time.Duration(chance.IntN(90*24*3600))*time.Second).Truncate(time.Second)
		duration, quantity := v1.Duration(3600*(1+chance.IntN(24))), 1
		sent := time.Now()
		if _, err := c.CreateReservation(b.Context(), v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &quantity}, client.CreateOptions{}); err != nil {
			b.Error(err)
		}
		return time.Since(sent)
	}
}

func benchmarkOne(b *testing.B, s *built.Service, database *labtest.MariaDB) {
	book := booker(b, s, 1)
	for range 50 {
		book() // warms up connections, plans and pages
	}
	before := database.Questions(b)
	var took []time.Duration
	for b.Loop() {
		took = append(took, book())
	}
	// The count includes periodic work, which is a few statements per second.
	b.ReportMetric(float64(database.Questions(b)-before)/float64(len(took)), "statements/op")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// seedReservations stores reservations of one host each. On every host they follow one after
// the other, as bookings would have placed them.
func seedReservations(b *testing.B, dsn string, hosts, reservations int) {
	b.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now, perHost := time.Now().Unix(), make([]int64, hosts)
	var rows, claims, events []string
	flush := func() {
		for _, into := range []struct {
			table  string
			values []string
		}{
			{"reservations (id, project_id, user_id, name, kind, quantity, host_properties, policy, vcpus, memory_mb, disk_gb, custom_resources, affinity, image, on_end, before_end, status, start_at, end_at, delayed_by_boot, degraded, created_at, updated_at, version)", rows},
			{"claims (reservation_id, seq, host, end_at, start_at, slices)", claims},
			{"events (reservation_id, seq, type, due_at, state, done_at, detail)", events},
		} {
			if len(into.values) > 0 {
				if _, err := db.Exec("INSERT INTO " + into.table + " VALUES " + strings.Join(into.values, ",")); err != nil {
					b.Fatal(err)
				}
			}
		}
		rows, claims, events = nil, nil, nil
	}
	for i := range reservations {
		id, host := uuid.NewString(), i%hosts
		step := 90 * 24 * 3600 / int64(1+reservations/hosts)
		start := now + 3600 + perHost[host]*step + int64(host)*step/int64(hosts)
		perHost[host]++
		end := start + 3600
		rows = append(rows, fmt.Sprintf("('%s','other','u','seed','host',1,'','first-fit',0,0,0,'','','','delete',0,'pending',%d,%d,0,'',%d,%d,1)", id, start, end, now, now))
		claims = append(claims, fmt.Sprintf("('%s',0,'host-%05d',%d,%d,0)", id, host+1, end, start))
		events = append(events, fmt.Sprintf("('%s',0,'created',%d,'done',%d,''),('%s',1,'start',%d,'pending',0,''),('%s',2,'end',%d,'pending',0,'')", id, now, now, id, start, id, end))
		if len(rows) == 1000 {
			flush()
		}
	}
	flush()
	for _, statement := range []string{
		"INSERT INTO host_versions (host, version) SELECT DISTINCT host, 1 FROM claims",
		"INSERT INTO project_usage (project_id, hosts, host_seconds) SELECT project_id, COUNT(*), SUM(end_at - start_at) FROM reservations GROUP BY project_id",
	} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
}
