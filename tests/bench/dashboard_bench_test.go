// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// BenchmarkCalendarPage measures the page with 1,000 hosts, and 5,000 reservations of two hosts in 90 days: the bytes that it
// transfers, the time until its first picture, the time between frames and the work of its main thread for each while it
// scrolls and shifts, and the memory of its scripts before and after as many changes as an hour with one each second has; each is an event.
// ALMANAC_BENCH_BEFORE names an almanacd of an earlier version; visits of its page take turns with those of this version.
func BenchmarkCalendarPage(b *testing.B) {
	pages := []*measuredPage{newMeasuredPage(b, filepath.Join(built.Commands(), "almanacd"), "")}
	if before := os.Getenv("ALMANAC_BENCH_BEFORE"); before != "" {
		pages = append(pages, newMeasuredPage(b, before, "before-"))
	}
	browser := labtest.StartBrowser(b)
	browser.Look(1440, 900, false)
	for b.Loop() {
		for _, p := range pages {
			p.visit(browser)
		}
	}
	for _, p := range pages {
		p.visit(browser)
		p.measure(b, browser)
	}
}

// pageHosts and pageReservations are the size of the cloud; each reservation has two hosts.
const pageHosts, pageReservations = 1000, 5000

// measuredPage is the page of a service.
type measuredPage struct {
	url, prefix  string
	client       *client.Client
	begin        time.Time
	shown, drawn []float64 // milliseconds
}

func newMeasuredPage(b *testing.B, program, prefix string) *measuredPage {
	b.Helper()
	s := built.Serve(b, built.CommandOf(context.WithoutCancel(b.Context()), program, built.NewFolder(b, hostsFile(pageHosts)), "OS_API__RATE_LIMIT=0"))
	p := &measuredPage{url: s.URL, prefix: prefix, client: s.Client(b), begin: time.Now().Add(2 * time.Hour).Truncate(time.Hour)}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := w; i < pageReservations; i += 8 {
				p.book(b, i, 2)
			}
		})
	}
	workers.Wait()
	return p
}

// book books some hosts on a day of the 88 that follow.
func (p *measuredPage) book(b *testing.B, i, quantity int) {
	at := p.begin.Add(time.Duration(i%88) * 24 * time.Hour)
	lasts := v1.Duration(3600 * (6 + i%16))
	if _, err := p.client.CreateReservation(b.Context(), v1.ReservationRequest{
		Name: fmt.Sprintf("run %d", i), StartTime: &at, Duration: &lasts, Quantity: &quantity,
	}, client.CreateOptions{}); err != nil {
		b.Error(err)
	}
}

// visit opens the quarter, and notes when its first picture and all claims are there.
func (p *measuredPage) visit(browser *labtest.Browser) {
	browser.Visit("about:blank")
	browser.Visit(fmt.Sprintf("%s/dashboard/#/calendar?start=%d&width=%d", p.url, time.Now().Unix()-24*3600, 90*24*3600))
	browser.Eventually("the calendar is there", `performance.getEntriesByName('calendar-shown').length > 0 && performance.getEntriesByName('first-contentful-paint').length > 0`)
	p.shown = append(p.shown, labtest.Evaluate[float64](browser, `performance.getEntriesByName('calendar-shown')[0].startTime`))
	p.drawn = append(p.drawn, labtest.Evaluate[float64](browser, `performance.getEntriesByName('first-contentful-paint')[0].startTime`))
}

// measure reports the visits, and measures the page that is open.
func (p *measuredPage) measure(b *testing.B, browser *labtest.Browser) {
	report := func(value float64, unit string) { b.ReportMetric(value, p.prefix+unit) }
	quantile := func(list []float64, of int) float64 { slices.Sort(list); return list[len(list)*of/100] }
	report(quantile(p.drawn, 50), "first-paint-ms")
	report(quantile(p.shown, 50), "all-claims-ms")
	// What is in the cache counts too.
	report(labtest.Evaluate[float64](browser, `(async () => {
		const all = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(one => !one.name.includes('/v1/events'));
		return all.reduce((sum, one) => sum + Math.max(one.transferSize, one.encodedBodySize), 0) / 1000
	})()`), "transferred-kB")
	before := browser.Busy()
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
	report(float64((browser.Busy()-before).Microseconds())/1000/float64(len(frames)), "busy-ms/frame")
	report(quantile(frames, 50), "frame-ms")
	report(quantile(frames, 95), "frame-p95-ms")
	report(quantile(frames, 99), "frame-p99-ms")
	const memory = `performance.memory.usedJSHeapSize / 1e6`
	report(labtest.Evaluate[float64](browser, memory), "heap-MB")
	claims := labtest.Evaluate[string](browser, `document.querySelector('.picture').dataset.claims`)
	const hour = 3600
	for i := range hour {
		p.book(b, i, 1)
	}
	browser.Eventually("the page has heard of everything", fmt.Sprintf(`Number(document.querySelector('.picture').dataset.claims) === %s + %d`, claims, hour))
	report(labtest.Evaluate[float64](browser, memory), "heap-after-3600-events-MB")
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
