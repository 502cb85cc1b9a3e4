// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// imagedCloud returns a service of 200 hosts with 10,000 reservations that need the images of
// manyImages.
func imagedCloud(b *testing.B) *scene {
	b.Helper()
	hosts := make([]inventory.Host, 200)
	for i := range hosts {
		hosts[i] = inventory.Host{
			Name: fmt.Sprintf("h%03d", i), Reservable: true, Power: inventory.PowerOn,
			Capacity: resource.Vector{VCPUs: 16, MemoryMB: 65536, DiskGB: 1000},
		}
	}
	var known *staging.Facts // nothing is refused until all are booked
	s := newScene(b, hosts, func(o *booking.Options) { o.Images = func() *staging.Facts { return known } })
	for i := range int64(10_000) {
		start := 200 + 100*i
		s.book(b, withImage(fmt.Sprint("image", i%29), during(1, start, start+15_000)))
	}
	known = tenGigabytes(30)
	return s
}

// BenchmarkRefusalForAnImage measures how long a booking is decided that is refused because of its
// image, among 10,000 reservations that need images: when the same has been asked before, for a start
// before which no image could come, a second later, and after another booking with an image. The goal is that the median is below 5 ms.
func BenchmarkRefusalForAnImage(b *testing.B) {
	s := imagedCloud(b)
	booked := int64(0)
	for _, tc := range []struct {
		name   string
		start  int64
		before func()
	}{
		{"again", 2000, func() {}},
		{"too-soon", 30, func() {}},
		{"a-second-later", 2000, func() { s.now.Add(1) }},
		{"after-another-booking", 2000, func() {
			booked++
			s.book(b, withImage("image28", during(1, 2_000_000+200*booked, 2_000_100+200*booked)))
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				tc.before()
				b.StartTimer()
				begun := time.Now()
				_, err := s.bookings.Book(b.Context(), owner, fourHosts(tc.start), nil)
				took = append(took, time.Since(begun))
				if refusal, is := errors.AsType[*reservation.Refusal](err); !is || refusal.Constraint != reservation.ImageTransfer {
					b.Fatal(err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(5, "p50-ms-goal")
		})
	}
}

// BenchmarkWaitsForImages measures how long others wait while one project sends such refused
// bookings without a pause, as BenchmarkWaits does. Others wait for the lock of the service, which a
// decision holds only to take its snapshot.
func BenchmarkWaitsForImages(b *testing.B) {
	s := imagedCloud(b)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = s.bookings.Book(ctx, owner, fourHosts(2000), nil) // refused
		}
	}()
	measureWaits(b, s)
	stop()
	<-done
}
