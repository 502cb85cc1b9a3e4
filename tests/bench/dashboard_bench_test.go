// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// BenchmarkCalendarPage measures the page with 1,000 hosts and 10,000 claims in 90 days: the bytes that it transfers, the
// time until its first picture, the time of a frame while it scrolls and shifts, and the memory of its scripts before and
// after as many changes as an hour with one each second has; each is an event.
func BenchmarkCalendarPage(b *testing.B) {
	s := built.StartOn(b, hostsFile(1000), "OS_API__RATE_LIMIT=0")
	c, err := client.New(client.Options{URL: s.URL})
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now().Add(2 * time.Hour).Truncate(time.Hour)
	book := func(i, quantity int) {
		at := begin.Add(time.Duration(i%88) * 24 * time.Hour)
		lasts := v1.Duration(3600 * (6 + i%16))
		if _, err := c.CreateReservation(b.Context(), v1.ReservationRequest{
			Name: fmt.Sprintf("run %d", i), StartTime: &at, Duration: &lasts, Quantity: &quantity,
		}, client.CreateOptions{}); err != nil {
			b.Error(err)
		}
	}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; i < 1000; i += 8 {
				book(i, 10)
			}
		})
	}
	workers.Wait()
	browser := labtest.StartBrowser(b)
	browser.Look(1440, 900, false)
	address := fmt.Sprintf("%s/dashboard/#/calendar?start=%d&width=%d", s.URL, time.Now().Unix()-24*3600, 90*24*3600)
	const ready = `performance.getEntriesByName('calendar-shown').length > 0`
	var shown, drawn []float64
	for b.Loop() {
		browser.Visit("about:blank")
		browser.Visit(address)
		browser.Eventually("the calendar is there", ready)
		shown = append(shown, labtest.Evaluate[float64](browser, `performance.getEntriesByName('calendar-shown')[0].startTime`))
		drawn = append(drawn, labtest.Evaluate[float64](browser, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(median(drawn), "first-paint-ms")
	b.ReportMetric(median(shown), "all-claims-ms")
	// In the first visit nothing was in the cache.
	b.ReportMetric(labtest.Evaluate[float64](browser, `(async () => {
		const all = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(one => !one.name.includes('/v1/events'));
		return all.reduce((sum, one) => sum + Math.max(one.transferSize, one.encodedBodySize), 0) / 1000
	})()`), "transferred-kB")
	frames := labtest.Evaluate[[]float64](browser, `new Promise(done => {
		const picture = document.querySelector('.picture'), times = [];
		let last = performance.now(), i = 0;
		const step = now => {
			times.push(now - last);
			last = now;
			picture.scrollTop += 60;
			picture.dispatchEvent(new WheelEvent('wheel', {deltaX: i % 40 < 20 ? 6 : -6, cancelable: true}));
			if (++i < 400) requestAnimationFrame(step); else done(times.slice(10));
		};
		requestAnimationFrame(step);
	})`)
	slices.Sort(frames)
	b.ReportMetric(frames[len(frames)/2], "frame-ms")
	b.ReportMetric(frames[len(frames)*99/100], "frame-p99-ms")
	const memory = `performance.memory.usedJSHeapSize / 1e6`
	b.ReportMetric(labtest.Evaluate[float64](browser, memory), "heap-MB")
	claims := labtest.Evaluate[string](browser, `document.querySelector('.picture').dataset.claims`)
	const hour = 3600
	for i := range hour {
		book(i, 1)
	}
	browser.Eventually("the page has heard of everything", fmt.Sprintf(`Number(document.querySelector('.picture').dataset.claims) === %s + %d`, claims, hour))
	b.ReportMetric(labtest.Evaluate[float64](browser, memory), "heap-after-3600-events-MB")
}

// BenchmarkChangeReachesAnotherReplica measures the time from the answer to a booking at one replica until a
// stream of another replica sends its event. Both use one MariaDB.
func BenchmarkChangeReachesAnotherReplica(b *testing.B) {
	connection := labtest.Database(b)
	built.Migrate(b, connection)
	first := built.Start(b, built.NewFolder(b, hostsFile(100)), "OS_DATABASE__CONNECTION="+connection, "OS_API__RATE_LIMIT=0")
	second := built.Start(b, built.NewFolder(b, hostsFile(100)), "OS_DATABASE__CONNECTION="+connection)
	heard := make(chan string, 1000)
	go func() {
		for e := range second.Client(b).Events(b.Context(), "") {
			heard <- string(e.Data)
		}
	}()
	booked := 0
	book := func() (name string) {
		booked++
		name = fmt.Sprintf("run %d", booked)
		at, lasts := time.Now().Add(time.Duration(booked)*time.Hour), v1.Duration(600)
		if _, err := first.Client(b).CreateReservation(b.Context(), v1.ReservationRequest{Name: name, StartTime: &at, Duration: &lasts}, client.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		return name
	}
	if !labtest.Poll(built.Patience, time.Second, func() bool { book(); return len(heard) > 0 }) {
		b.Fatal("the stream has no events")
	}
	var took []float64
	for b.Loop() {
		name := book()
		answered := time.Now()
		for !strings.Contains(<-heard, name) {
		}
		took = append(took, float64(time.Since(answered).Milliseconds()))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "median-ms")
	b.ReportMetric(took[len(took)-1], "longest-ms")
}
