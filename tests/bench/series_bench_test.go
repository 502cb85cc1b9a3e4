// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkPostSeries books a series at an almanacd on MariaDB, and a single reservation of the same hosts in turn: 260 occurrences,
// those of each working day of a year, of 4 hosts for 9 hours. Then it moves all of them by an hour, and cancels them. The goal is
// that the series is booked in at most 20 times the time of one reservation; one by one its reservations would take 260 times.
func BenchmarkPostSeries(b *testing.B) {
	for _, size := range []struct{ hosts, reservations int }{{1_000, 3_000}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("hosts=%d/reservations=%d", size.hosts, size.reservations), func(b *testing.B) {
			database := labtest.StartMariaDB(b)
			connection := database.URL("almanac")
			built.Migrate(b, connection)
			seedReservations(b, database.DSN("almanac"), size.hosts, size.reservations)
			benchmarkSeries(b, built.StartOn(b, hostsFile(size.hosts), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_START_AHEAD=0"), database)
		})
	}
}

func benchmarkSeries(b *testing.B, s *built.Service, database *labtest.MariaDB) {
	c, err := client.New(client.Options{URL: s.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		b.Fatal(err)
	}
	quantity, duration := 4, v1.Duration(9*3600)
	begin := time.Now().UTC().AddDate(0, 0, 120)
	for begin.Weekday() != time.Monday {
		begin = begin.AddDate(0, 0, 1)
	}
	day := time.Date(begin.Year(), begin.Month(), begin.Day(), 9, 0, 0, 0, time.UTC)
	var single, whole, changed, canceled []time.Duration
	taking := func(times *[]time.Duration, do func() error) {
		sent := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		*times = append(*times, time.Since(sent))
	}
	one := func() error {
		_, err := c.CreateReservation(b.Context(), v1.ReservationRequest{Name: "r", StartTime: &day, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
		return err
	}
	for range 20 {
		taking(new([]time.Duration), one) // warms up connections and pages
		day = day.Add(time.Hour)
	}
	statements := int64(0)
	for b.Loop() {
		for range 5 {
			day = day.Add(time.Hour)
			taking(&single, one)
		}
		var made v1.Series
		before := database.Questions(b)
		taking(&whole, func() (err error) {
			made, err = c.CreateSeries(b.Context(), v1.SeriesRequest{
				Name: "weekdays", Quantity: &quantity, Duration: duration,
				Rule: "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;COUNT=260", TimeZone: "Europe/Paris", LocalStart: begin.Format("2006-01-02") + "T09:00",
			}, client.CreateOptions{})
			return err
		})
		statements += database.Questions(b) - before
		if len(made.Occurrences) != 260 || made.Occurrences[259].ReservationID == "" {
			b.Fatalf("the series has %d occurrences", len(made.Occurrences))
		}
		taking(&changed, func() error {
			_, err := c.ChangeSeries(b.Context(), made.ID, "", v1.SeriesChange{TimeOfDay: new("10:00")})
			return err
		})
		taking(&canceled, func() error { return c.DeleteSeries(b.Context(), made.ID, "") })
	}
	reportSpread(b, single, "booking-")
	reportSpread(b, whole, "series-")
	reportSpread(b, changed, "changed-")
	reportSpread(b, canceled, "canceled-")
	b.ReportMetric(float64(statements)/float64(len(whole)), "statements/series")
	b.ReportMetric(float64(medianOf(whole))/float64(medianOf(single)), "x-booking")
	b.ReportMetric(20, "x-booking-goal")
}

func medianOf(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
