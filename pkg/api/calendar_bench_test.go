// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/tests/growth"
)

// filledDays is the number of days in which filled has reservations.
const filledDays = 90

// filled returns a cloud of this number of hosts with ten claims for each of them in 90 days, of
// reservations of four hosts that last from 1 to 72 hours.
func filled(b *testing.B, quantity int) *cloud {
	const hour = 3600
	hosts := make([]inventory.Host, quantity)
	for i := range hosts {
		hosts[i] = machine(fmt.Sprintf("host-%04d", i))
		hosts[i].Zone = fmt.Sprint("az", i%3)
		hosts[i].Properties = map[string]inventory.Value{"rack": inventory.NumberValue(float64(i / 20)), "gpu": inventory.StringValue("a100")}
	}
	c := start(b, setup{hosts: hosts, adjust: lasting})
	chance := rand.New(rand.NewPCG(1, 1))
	for range quantity * growth.ClaimsPerHost / 4 {
		req := reservation.Request{Start: noon.Add(1 + chance.Int64N((filledDays-3)*24*hour)), Duration: int64(hour * math.Exp(chance.Float64()*math.Log(72)))}
		req.Terms = reservation.Terms{Name: "bench", Kind: reservation.Hosts, Quantity: 4, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete}
		by := booking.Caller{ProjectID: []string{"demo", "other"}[chance.IntN(2)], UserID: "u"}
		if _, err := c.bookings.Book(b.Context(), by, req, nil); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// serve answers a request without a connection.
func (c *cloud) serve(path, token, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("X-Auth-Token", token)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// wholeCalendar is the path of the calendar of all days of filled.
func wholeCalendar() string {
	return "/v1/calendar?start=" + noon.String() + "&end=" + noon.Add(filledDays*24*3600).String()
}

// BenchmarkGrowth measures the calendar's answer, one page of at most 1,000 hosts, and a booking of
// one host on SQLite, over HTTP; the reservation is deleted again.
func BenchmarkGrowth(b *testing.B) {
	growth.Measure(b, "calendar over REST", func(b *testing.B, hosts int) growth.Run {
		c, path := filled(b, hosts), wholeCalendar()
		return growth.Same(func() {
			if w := c.serve(path, "demo/member", ""); w.Code != http.StatusOK {
				b.Fatal(w.Code, w.Body)
			}
		})
	})
	growth.Measure(b, "booking over REST", func(b *testing.B, hosts int) growth.Run {
		c, booked := filled(b, hosts), ""
		chance := rand.New(rand.NewPCG(2, 2))
		return func() func() {
			if booked != "" {
				if _, a := c.demo.exchange(http.MethodDelete, "/v1/reservations/"+booked, ""); a.status >= http.StatusMultipleChoices {
					b.Fatal(a)
				}
			}
			body := fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": "8h", "quantity": 1}`, noon.Add(3600+chance.Int64N((filledDays-3)*24*3600)))
			return func() {
				_, a := c.demo.exchange(http.MethodPost, "/v1/reservations", body)
				booked = want[v1.Reservation](b, a, http.StatusCreated).ID
			}
		}
	})
}

// BenchmarkCalendar answers with 90 days of 1,000 hosts, and writes the same rows as JSON, which no
// answer can do without.
func BenchmarkCalendar(b *testing.B) {
	c, path := filled(b, 1000), wholeCalendar()
	var rows v1.Calendar
	for _, answer := range []struct{ name, path, token string }{
		{"a tenant's", path, "demo/member"}, {"an admin's", path, "demo/admin"}, {"with facts", path + "&facts=true", "demo/admin"},
	} {
		b.Run(answer.name, func(b *testing.B) {
			var w *httptest.ResponseRecorder
			for b.Loop() {
				if w = c.serve(answer.path, answer.token, ""); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
			rows = v1.Calendar{}
			must(b, json.Unmarshal(w.Body.Bytes(), &rows))
			b.ReportMetric(float64(w.Body.Len()), "B/answer")
		})
		b.Run(answer.name+", the rows as JSON", func(b *testing.B) {
			for b.Loop() {
				encoder := json.NewEncoder(io.Discard)
				encoder.SetEscapeHTML(false)
				must(b, encoder.Encode(rows))
			}
		})
	}
	b.Run("asked again", func(b *testing.B) {
		tag := c.serve(path, "demo/member", "").Header().Get("ETag")
		for b.Loop() {
			if w := c.serve(path, "demo/member", tag); w.Code != http.StatusNotModified {
				b.Fatal(w.Code)
			}
		}
	})
}

// BenchmarkStreams opens 500 streams, and measures the time from a booking until all of their clients
// have its event, and the memory that a stream takes.
func BenchmarkStreams(b *testing.B) {
	const streams = 500
	c := start(b, setup{adjust: func(o *api.Options) { lasting(o); o.Streams.MostPerProject = streams }})
	before := inUse()
	var clients []*bufio.Reader
	for range streams {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
		must(b, err)
		b.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: other/member\r\n\r\n")
		must(b, err)
		clients = append(clients, bufio.NewReaderSize(conn, 1024))
		until(b, clients[len(clients)-1], "id: ")
	}
	perStream := float64(inUse()-before) / streams
	second := int64(0)
	for b.Loop() {
		var waiting sync.WaitGroup
		for _, client := range clients {
			waiting.Go(func() { until(b, client, "data: ") })
		}
		second += 2
		req := reservation.Request{Start: noon.Add(second), Duration: 1}
		req.Terms = reservation.Terms{Name: "bench", Kind: reservation.Hosts, Quantity: 1, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete}
		if _, err := c.bookings.Book(b.Context(), booking.Caller{ProjectID: "demo", UserID: "u"}, req, nil); err != nil {
			b.Fatal(err)
		}
		waiting.Wait()
	}
	b.ReportMetric(perStream, "B/stream")
	c.handler.Drain()
}

// until reads lines until one begins with text.
func until(b *testing.B, from *bufio.Reader, text string) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			b.Error(err)
			return
		}
		if strings.HasPrefix(line, text) {
			return
		}
	}
}

// inUse returns how many bytes of heap and stacks are in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
