// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkDeleteForALine cancels reservations of 4 hosts at two almanacds on MariaDB in turn: at one of them nobody waits, at the other one 10,000
// reservations of 1,000 projects wait for 1 to 8 of the 1,000 hosts, and most cancellations book one or more of them. The goal is that
// a cancellation there takes at most 3 times as long.
func BenchmarkDeleteForALine(b *testing.B) {
	const hosts, held, waiting = 1_000, 250, 10_000
	server := labtest.StartMariaDB(b)
	day := time.Now().UTC().AddDate(0, 0, 30).Truncate(time.Hour)
	var clients [2]*client.Client
	var ids [2][]string
	for i := range clients {
		name := fmt.Sprint("almanac", i)
		connection := server.URL(name)
		built.Migrate(b, connection)
		seedReservations(b, server.DSN(name), hosts, 3_000)
		start := func() (*built.Service, *client.Client) {
			s := built.StartOn(b, hostsFile(hosts), "OS_DATABASE__CONNECTION="+connection)
			c, err := client.New(client.Options{URL: s.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}})
			if err != nil {
				b.Fatal(err)
			}
			return s, c
		}
		s, c := start()
		quantity, duration := 4, v1.Duration(9*3600)
		for range held {
			made, err := c.CreateReservation(b.Context(), v1.ReservationRequest{Name: "held", StartTime: &day, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
			if err != nil {
				b.Logf("%d are held: %v", len(ids[i]), err) // seeded reservations have the other hosts
				break
			}
			ids[i] = append(ids[i], made.ID)
		}
		s.Kill()
		if i == 1 {
			seedWaiting(b, server.DSN(name), waiting, day)
		}
		_, c = start()
		clients[i] = c
	}
	n := min(len(ids[0]), len(ids[1]))
	var times [2][]time.Duration
	for round := 0; b.Loop(); round++ {
		if round == n {
			b.Fatalf("more than %d cancellations: use -benchtime", n)
		}
		for i, c := range clients {
			sent := time.Now()
			if err := c.DeleteReservation(b.Context(), ids[i][round]); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(sent))
		}
	}
	db, err := sql.Open("mysql", server.DSN("almanac1"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var booked int
	if err := db.QueryRow("SELECT COUNT(*) FROM changes WHERE action = 'book'").Scan(&booked); err != nil {
		b.Fatal(err)
	}
	reportSpread(b, times[0], "alone-")
	reportSpread(b, times[1], "line-")
	b.ReportMetric(float64(booked)/float64(len(times[1])), "booked/cancellation")
	b.ReportMetric(float64(medianOf(times[1]))/float64(medianOf(times[0])), "x-alone")
	b.ReportMetric(3, "x-alone-goal")
}

// seedWaiting stores reservations of 1,000 projects that wait for room on a day.
func seedWaiting(b *testing.B, dsn string, waiting int, day time.Time) {
	b.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now := time.Now().Unix()
	var rows, events []string
	for i := range waiting {
		id, start := uuid.NewString(), day.Unix()
		lasts := int64(3600 * (1 + i%9))
		end := start + 9*3600
		rows = append(rows, fmt.Sprintf("('%s','p%d','u','waits','host',%d,'','first-fit',0,0,0,'','','','delete',0,'waiting',%d,%d,0,'',%d,%d,1,%d,%d)",
			id, i%1000, 1+i%8, start, start+lasts, now-int64(waiting-i), now, start, end))
		events = append(events, fmt.Sprintf("('%s',0,'created',%d,'done',%d,''),('%s',1,'expire',%d,'pending',0,'')", id, now, now, id, end-lasts))
		if len(rows) == 1000 || i == waiting-1 {
			if _, err := db.Exec("INSERT INTO reservations (id, project_id, user_id, name, kind, quantity, host_properties, policy, vcpus, memory_mb, disk_gb, custom_resources, affinity, image, on_end, " +
				"before_end, status, start_at, end_at, delayed_by_boot, degraded, created_at, updated_at, version, window_start, window_end) VALUES " + strings.Join(rows, ",")); err != nil {
				b.Fatal(err)
			}
			if _, err := db.Exec("INSERT INTO events (reservation_id, seq, type, due_at, state, done_at, detail) VALUES " + strings.Join(events, ",")); err != nil {
				b.Fatal(err)
			}
			rows, events = nil, nil
		}
	}
}
