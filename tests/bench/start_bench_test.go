// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkStart starts an almanacd on a MariaDB with 100,000 live reservations of 10,000 hosts, and
// measures the time until its health check answers 200 and its memory. In turn, one client of the
// database reads the same rows with the same statements.
func BenchmarkStart(b *testing.B) {
	const hosts, reservations = 10_000, 100_000
	database := labtest.StartMariaDB(b)
	connection := database.URL("almanac")
	built.Migrate(b, connection)
	seedReservations(b, database.DSN("almanac"), hosts, reservations)
	folder := built.NewFolder(b, hostsFile(hosts))
	begin := func() *built.Service { return built.Start(b, folder, "OS_DATABASE__CONNECTION="+connection) }

	var statements []string
	for _, sent := range database.Record(b, func() { begin().Kill() }) {
		statements = append(statements, slices.DeleteFunc(sent, func(s string) bool { return !strings.HasPrefix(s, "SELECT") })...)
	}
	reader, err := sql.Open("mysql", database.DSN("almanac"))
	if err != nil {
		b.Fatal(err)
	}
	defer reader.Close()
	reader.SetMaxOpenConns(1)

	var starts, readings []time.Duration
	var rows int
	var s *built.Service
	for b.Loop() {
		if s != nil {
			s.Kill()
		}
		begun := time.Now()
		s = begin()
		healthy(b, s)
		starts = append(starts, time.Since(begun))
		begun = time.Now()
		rows = readAll(b, reader, statements)
		readings = append(readings, time.Since(begun))
	}
	if rows < reservations {
		b.Fatalf("the client has read %d rows in %d statements", rows, len(statements))
	}
	slices.Sort(starts)
	slices.Sort(readings)
	ready, read := starts[len(starts)/2], readings[len(readings)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ready.Seconds(), "ready-s")
	b.ReportMetric(read.Seconds(), "bare-s")
	b.ReportMetric(ready.Seconds()/read.Seconds(), "ready/bare")
	b.ReportMetric(resident(b, s, "VmHWM"), "peak-MiB")
	b.ReportMetric(resident(b, s, "VmRSS"), "started-MiB")
	churn(b, s, 3_000)
	b.ReportMetric(resident(b, s, "VmRSS"), "churned-MiB")
	b.Log("goals: ready-s 5, ready/bare 3, peak-MiB 1024, churned-MiB about started-MiB")
}

// healthy waits until the health check answers 200.
func healthy(b *testing.B, s *built.Service) {
	b.Helper()
	for until := time.Now().Add(built.Patience); ; {
		answer, err := http.Get(s.URL + "/healthcheck")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(until) {
			b.Fatalf("the service is not healthy: %v", err)
		}
	}
}

// readAll sends statements and reads all rows of the answers, without a copy of the values. It returns
// how many rows there were.
func readAll(b *testing.B, db *sql.DB, statements []string) (n int) {
	b.Helper()
	for _, statement := range statements {
		rows, err := db.Query(statement)
		if err != nil {
			b.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			b.Fatal(err)
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		for ; rows.Next(); n++ {
			if err := rows.Scan(values...); err != nil {
				b.Fatal(err)
			}
		}
		if err := rows.Err(); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

// resident returns a figure of the service's memory, in MiB, from /proc/[pid]/status.
func resident(b *testing.B, s *built.Service, figure string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	var kb float64
	_, after, _ := strings.Cut(string(text), figure+":")
	if _, err := fmt.Sscan(after, &kb); err != nil {
		b.Fatalf("read %s: %v", figure, err)
	}
	return kb / 1024
}

// churn books n reservations and cancels each of them.
func churn(b *testing.B, s *built.Service, n int) {
	b.Helper()
	c := s.Client(b)
	for i := range n {
		begin := time.Now().Add(time.Duration(1+i%2000) * time.Hour).Truncate(time.Second)
		duration, quantity := v1.Duration(3600), 1
		made, err := c.CreateReservation(b.Context(), v1.ReservationRequest{Name: "r", StartTime: &begin, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.DeleteReservation(b.Context(), made.ID); err != nil {
			b.Fatal(err)
		}
	}
}
