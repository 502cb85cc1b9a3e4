// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// manyImages returns a view of 200 hosts with live reservations of one host each. They need
// images of 10 GB at 100 MB/s; one starts every 100 s, after some that cannot be on time.
func manyImages(t testing.TB, live, hopeless int, limit int64) planning.View {
	t.Helper()
	hosts := make([]inventory.Host, 200)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: fmt.Sprintf("h%03d", i), Reservable: true, Capacity: resource.Vector{VCPUs: 16, MemoryMB: 65536, DiskGB: 1000}}
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(base, snapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := tenGigabytes(30)
	f.Site.Limit = limit
	list := make([]reservation.Reservation, live)
	for i := range list {
		w := span.New(at(200+100*int64(max(i-hopeless, 0))), 36_000)
		if i < hopeless {
			w = span.New(at(20), 36_000)
		}
		list[i] = reservation.Reservation{
			ID: fmt.Sprint(i), Span: w, Terms: reservation.Terms{Image: fmt.Sprint("image", i%29)},
			Claims: []reservation.Claim{{Host: fmt.Sprintf("h%03d", i%len(hosts)), Span: w}},
		}
	}
	v.Images = &planning.Images{Facts: f, Accepted: func(now span.Instant) *staging.Accepted { return f.Accepted(now, planning.Demands(f, list)) }}
	return v
}

// tenGigabytes returns facts of images of 10 GB, which one repository sends at 100 MB/s.
func tenGigabytes(images int) *staging.Facts {
	f := &staging.Facts{
		Site:   staging.Site{Strategy: staging.EDF, Repositories: []staging.Repository{{Name: "glance", Rate: 100e6}}, Margin: 60, Lifetime: 86400},
		Images: map[string]staging.Image{},
	}
	for i := range images {
		id := fmt.Sprint("image", i)
		f.Images[id] = staging.Image{ID: id, Size: 10e9}
	}
	return f
}

// fourHosts asks for instances that fill four hosts, from start on.
func fourHosts(start int64) reservation.Request {
	return reservation.Request{
		Terms: reservation.Terms{Kind: reservation.Instances, Quantity: 64, Resources: resource.Vector{VCPUs: 1}, Affinity: calendar.AffinityNone, Image: "image29"},
		Start: at(start), End: at(start + 3600),
	}
}

// manyCases lists views, and whether they accept the request.
var manyCases = []struct {
	name           string
	live, hopeless int
	limit          int64
	start          int64
	accepted       bool
}{
	{"accepted", 1000, 0, 0, 200_000, true},
	{"refused", 1000, 0, 0, 2000, false},
	{"refused with a pool limit", 1000, 0, 25e9, 2000, false},
	{"accepted with 30 hopeless", 300, 30, 0, 200_000, true},
	{"refused with 30 hopeless", 300, 30, 0, 2000, false},
	{"refused with 10000", 10_000, 0, 0, 2000, false},
}

func TestWhoBooksWaitsShortlyForARefusalOfAnother(t *testing.T) {
	for _, tc := range manyCases {
		v := manyImages(t, tc.live, tc.hopeless, tc.limit)
		start := time.Now()
		_, err := planning.NewPlan(v, fourHosts(tc.start))
		if took := time.Since(start); tc.live <= 1000 && took > 30*time.Second { // under 50 ms on an idle core
			t.Errorf("%s: it took %v", tc.name, took)
		}
		if refusal, refused := errors.AsType[*reservation.Refusal](err); refused == tc.accepted {
			t.Errorf("%s: %v", tc.name, err)
		} else if refused && refusal.EarliestStart != 0 {
			if _, err := planning.NewPlan(v, fourHosts(int64(refusal.EarliestStart-base))); err != nil {
				t.Errorf("%s: at its earliest start: %v", tc.name, err)
			}
		}
	}
}

// One image is new to the hosts, the other is that of many reservations.
//
//make:test-drawn
func TestTheCostOfARefusalGrowsWithTheReservationsAndNotWithTheirSquare(t *testing.T) {
	for _, image := range []string{"image29", "image0"} {
		t.Run(image, func(t *testing.T) { compareRefusals(t, withImage(image, fourHosts(2000))) })
	}
}

func compareRefusals(t *testing.T, req reservation.Request) {
	few, many := manyImages(t, 1000, 0, 0), manyImages(t, 10_000, 0, 0)
	cost := func(v planning.View, times int) time.Duration {
		start := time.Now()
		for range times {
			if _, err := planning.NewPlan(v, req); err == nil {
				t.Fatal("the request is not refused")
			}
		}
		return time.Since(start)
	}
	tenOfFew, oneOfMany := cost(few, 10), cost(many, 1)
	for range 3 { // other work on the machine slows both, which take about as long
		tenOfFew, oneOfMany = min(tenOfFew, cost(few, 10)), min(oneOfMany, cost(many, 1))
	}
	if oneOfMany > 4*tenOfFew {
		t.Errorf("one among ten times as many takes %v, ten take %v", oneOfMany, tenOfFew)
	}
}

// BenchmarkPlanWithImages measures how long one answer takes if nothing is known of earlier ones.
func BenchmarkPlanWithImages(b *testing.B) {
	for _, tc := range manyCases {
		b.Run(tc.name, func(b *testing.B) {
			v := manyImages(b, tc.live, tc.hopeless, tc.limit)
			for b.Loop() {
				_, _ = planning.NewPlan(v, fourHosts(tc.start))
			}
		})
	}
}
