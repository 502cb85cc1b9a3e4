// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// busyCloud returns a service of 1,000 hosts with traits and 10,000 reservations of hosts and instances.
func busyCloud(b *testing.B) *scene {
	b.Helper()
	var hosts []inventory.Host
	for i := range 1_000 {
		h := inventory.Host{
			Name: fmt.Sprintf("cmp-%04d", i), Capacity: resource.Vector{VCPUs: 64, MemoryMB: 640_000, DiskGB: 10_000},
			Reservable: true, Power: inventory.PowerOn,
		}
		for j := range 100 { // about as many as libvirt on x86 reports
			h.Traits = append(h.Traits, fmt.Sprintf("HW_CPU_X86_FEATURE_%03d", j))
		}
		hosts = append(hosts, h)
	}
	s := newScene(b, hosts)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 10_000 {
		req := during(1, 0, 0)
		if i%2 == 0 {
			req = cpus(4, 1+i%8, 0, 0)
		}
		req.Start, req.Duration = at(1000+random.Int64N(90*86400)), 3600*(1+random.Int64N(72))
		req.End = req.Start + 14*86400
		if _, err := s.bookings.Book(b.Context(), owner, req, nil); err != nil {
			b.Fatal(i, err)
		}
	}
	return s
}

// largeRequests returns the most expensive calls, each to be repeated.
func largeRequests(b *testing.B, s *scene) map[string]func(ctx context.Context) {
	wide := func(req reservation.Request) reservation.Request {
		req.Start, req.End, req.Duration = at(10), at(364*86400), 7*86400
		return req
	}
	var parts []string
	for i := range 120 {
		parts = append(parts, fmt.Sprintf(`["not",["in","NONE_%d","$traits"]]`, i))
	}
	filtered := wide(during(1_000, 0, 0))
	filtered.HostProperties = `["and",` + strings.Join(parts, ",") + `]`
	spread := wide(during(900, 0, 0))
	spread.Policy = calendar.PolicyPEDurationBestFit
	slices := wide(cpus(1, 63_900, 0, 0))
	many := cpus(1, 30_000, 0, 0)
	many.Start, many.End, many.Duration = at(100*86400), at(101*86400), 86400
	extended := s.book(b, many)
	blocking := wide(cpus(60, 1_000, 0, 0))
	blocking.Start, blocking.End = at(200*86400), at(207*86400)
	s.book(b, blocking)
	ask := func(do func(ctx context.Context) error) func(ctx context.Context) {
		return func(ctx context.Context) { _ = do(ctx) } // most are refused
	}
	return map[string]func(ctx context.Context){
		"large-filters":   ask(func(ctx context.Context) error { _, err := s.bookings.Book(ctx, owner, filtered, nil); return err }),
		"every-rectangle": ask(func(ctx context.Context) error { _, err := s.bookings.Offer(ctx, owner, spread); return err }),
		"many-instances":  ask(func(ctx context.Context) error { _, err := s.bookings.Book(ctx, owner, slices, nil); return err }),
		"availability": ask(func(ctx context.Context) error {
			_, _, err := s.bookings.Availability(ctx, owner, slices, 1000)
			return err
		}),
		"refused-extensions": ask(func(ctx context.Context) error {
			_, err := s.bookings.Change(ctx, owner, extended.ID, planning.Change{End: new(at(364 * 86400))})
			return err
		}),
		"pages-of-the-whole": ask(func(ctx context.Context) error {
			return s.bookings.InTurn(ctx, "large", func() { s.bookings.Live(span.Span{End: span.Forever}) })
		}),
	}
}

// BenchmarkWaits measures how long others wait while one project sends the largest requests as
// fast as the service answers, four at a time. The others are select_destinations with its
// reads of the service, the search for starts and ends that are due, and the inventory. The
// row "alone" runs without that project.
func BenchmarkWaits(b *testing.B) {
	s := busyCloud(b)
	large := largeRequests(b, s)
	for _, name := range append([]string{"alone"}, slices.Sorted(maps.Keys(large))...) {
		b.Run(name, func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var sent atomic.Int64
			done := make(chan struct{})
			for range 4 {
				go func() {
					for ctx.Err() == nil && large[name] != nil {
						large[name](ctx)
						sent.Add(1)
					}
					done <- struct{}{}
				}()
			}
			measureWaits(b, s)
			stop()
			for range 4 {
				<-done
			}
			b.ReportMetric(float64(sent.Load())/b.Elapsed().Seconds(), "large/s")
		})
	}
}

// measureWaits makes the calls of the others every two milliseconds, beside a booking that
// makes the service write.
func measureWaits(b *testing.B, s *scene) {
	waits := map[string][]time.Duration{}
	timed := func(what string, do func()) {
		begun := time.Now()
		do()
		waits[what] = append(waits[what], time.Since(begun))
	}
	next := time.NewTicker(2 * time.Millisecond)
	defer next.Stop()
	for b.Loop() {
		<-next.C
		timed("select", func() {
			s.bookings.Promised(at(0))
			s.bookings.Reservation("none")
		})
		timed("events", func() { s.bookings.CarryOut(b.Context()) })
		timed("inventory", func() { s.bookings.Observe(s.bookings.Snapshot()) })
	}
	for what, took := range waits {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, what+"-p99-ms")
	}
}

// BenchmarkCancellationsForALine measures a cancellation on 1,000 hosts without room, when nobody waits, and when 10,000 of 1,000 projects do: for
// what no cancellation can give, and for what each of them gives.
func BenchmarkCancellationsForALine(b *testing.B) {
	for _, tc := range []struct {
		name     string
		waiting  int
		quantity int
	}{{"nobody waits", 0, 0}, {"10000 wait for more", 10_000, 5}, {"10000 wait for this", 10_000, 4}} {
		b.Run(tc.name, func(b *testing.B) {
			names := make([]string, 1000)
			for i := range names {
				names[i] = fmt.Sprintf("node-%04d", i)
			}
			s := newScene(b, named(names...), limited(planning.Limits{Waiting: 10}))
			var held []string
			for range 250 {
				held = append(held, s.book(b, during(4, 10_000, 20_000)).ID)
			}
			for i := range tc.waiting {
				req := patient(during(tc.quantity, 10_000+int64(i%7)*100, 20_000-int64(i%11)*100))
				s.waits(b, booking.Caller{ProjectID: fmt.Sprint("p", i%1000)}, req)
			}
			i := 0
			for b.Loop() {
				b.StopTimer()
				if i == len(held) {
					b.Fatal("more cancellations than reservations: use -benchtime=200x")
				}
				b.StartTimer()
				s.cancel(b, owner, held[i])
				i++
			}
			booked := s.bookings.Counted().ByStatus[reservation.Pending] - (len(held) - i)
			b.ReportMetric(float64(booked)/float64(i), "booked/op")
		})
	}
}
