// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkSizes measures what an almanacd and its MariaDB need in clouds of three sizes: the memory after
// the start, at most, and after 3,000 bookings and cancellations, the CPU time that a replica takes while
// nobody asks it, and the size of the tables.
func BenchmarkSizes(b *testing.B) {
	for _, size := range []struct{ hosts, reservations int }{{100, 1_000}, {1_000, 10_000}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("hosts=%d/reservations=%d", size.hosts, size.reservations), func(b *testing.B) {
			database := labtest.StartMariaDB(b)
			connection := database.URL("almanac")
			built.Migrate(b, connection)
			seedReservations(b, database.DSN("almanac"), size.hosts, size.reservations)
			const booked, resting = 3_000, 20 * time.Second
			for b.Loop() {
				s := built.StartOn(b, hostsFile(size.hosts), "OS_DATABASE__CONNECTION="+connection)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(resident(b, s, "VmRSS"), "started-MiB")
				before := processorTime(b, s)
				<-time.After(resting)
				b.ReportMetric((processorTime(b, s)-before).Seconds()/resting.Seconds()*100, "resting-%")
				stored := tables(b, database.DSN("almanac"))
				b.ReportMetric(stored/(1<<20), "tables-MiB")
				before = processorTime(b, s)
				churn(b, s, booked)
				b.ReportMetric((processorTime(b, s)-before).Seconds()*1000/booked, "booked-and-canceled-ms")
				b.ReportMetric((tables(b, database.DSN("almanac"))-stored)/booked, "bytes/reservation")
				b.ReportMetric(resident(b, s, "VmRSS"), "churned-MiB")
				b.ReportMetric(resident(b, s, "VmHWM"), "peak-MiB")
				s.Kill()
			}
		})
	}
}

// processorTime returns the user and system time of a service since its start.
func processorTime(b *testing.B, s *built.Service) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// tables returns how many bytes the tables of a database take, with their indexes, as InnoDB estimates them.
func tables(b *testing.B, dsn string) (bytes float64) {
	b.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	names := []string{}
	rows, err := db.Query("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()")
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec("ANALYZE TABLE " + strings.Join(names, ", ")); err != nil {
		b.Fatal(err)
	}
	if err := db.QueryRow("SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}
