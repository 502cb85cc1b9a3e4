// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkPostReservationBesideDeadReceivers books at an almanacd on MariaDB, first without webhooks, and then with 100 of them
// whose receiver takes connections and never answers: after 100 bookings 10,000 deliveries wait. The goal is that the median
// of the bookings is the same but for noise, a quarter.
func BenchmarkPostReservationBesideDeadReceivers(b *testing.B) {
	const hooks, bookings = 100, 100
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer dead.Close()
	database := labtest.StartMariaDB(b)
	connection := database.URL("almanac")
	built.Migrate(b, connection)
	s := built.StartOn(b, hostsFile(1_000), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_START_AHEAD=0",
		"OS_WEBHOOKS__ALLOWED=http://127.0.0.1/32:*", fmt.Sprint("OS_WEBHOOKS__MAX_PER_PROJECT=", hooks))
	c, err := client.New(client.Options{URL: s.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		b.Fatal(err)
	}
	start, duration := time.Now().Add(24*time.Hour), v1.Duration(3600)
	book := func(n int) (times []time.Duration) {
		for range n {
			start = start.Add(time.Hour)
			sent := time.Now()
			if _, err := c.CreateReservation(b.Context(), v1.ReservationRequest{Name: "r", StartTime: &start, Duration: &duration}, client.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(sent))
		}
		return times
	}
	book(50) // warms up connections and pages
	for b.Loop() {
		without := book(bookings)
		var ids []string
		for n := range hooks {
			made, err := c.CreateWebhook(b.Context(), v1.WebhookRequest{Name: fmt.Sprint(n), URL: "http://" + dead.Addr().String()})
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, made.ID)
		}
		book(bookings) // 10,000 deliveries
		with := book(bookings)
		waiting := 0
		for _, id := range ids {
			shown, err := c.GetWebhook(b.Context(), id)
			if err != nil {
				b.Fatal(err)
			}
			waiting += shown.Waiting
			if err := c.DeleteWebhook(b.Context(), id); err != nil {
				b.Fatal(err)
			}
		}
		if waiting < hooks*bookings {
			b.Errorf("only %d deliveries wait", waiting)
		}
		reportSpread(b, without, "without-")
		reportSpread(b, with, "with-")
		b.ReportMetric(float64(waiting), "waiting")
		b.ReportMetric(float64(medianOf(with))/float64(medianOf(without)), "x-without")
		b.ReportMetric(1.25, "x-without-goal")
	}
}
