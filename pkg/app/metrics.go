package app

import (
	"math"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// metrics registers metrics whose values are read at each scrape.
type metrics struct{ registry *prometheus.Registry }

func (m metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

func (m metrics) counter(name, help string, labels prometheus.Labels, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// measure returns the metrics of a process with any role. All jobs must have been added before.
func (a *App) measure(bus *bus) metrics {
	m := metrics{prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauge("almanac_build_info", "1, with the versions of Almanac and of Go.",
		prometheus.Labels{"version": a.version, "go_version": runtime.Version()}, func() float64 { return 1 })
	for _, w := range a.watched {
		m.job(w)
	}
	for _, t := range bus.transports {
		m.transport(t)
	}
	for _, service := range []string{"nova", "placement", "glance"} {
		m.counter("almanac_cloud_calls_total", "Requests sent to a service of the cloud.", prometheus.Labels{"service": service},
			func() float64 { return float64(a.cloud.calls(service)) })
	}
	return m
}

func (m metrics) job(w *watchedJob) {
	labels := prometheus.Labels{"name": w.Name}
	m.gauge("almanac_job_failing", "1 where periodic work failed, or does not come to an end.", labels,
		func() float64 { return oneIf(w.trouble() != nil) })
	m.gauge("almanac_job_last_success_timestamp_seconds", "When periodic work last ended well; 0 where it never did.", labels,
		func() float64 {
			if at := w.lastSuccess(); !at.IsZero() {
				return float64(at.UnixMilli()) / 1000
			}
			return 0
		})
}

func (m metrics) transport(t namedTransport) {
	labels := prometheus.Labels{"transport": t.name}
	status := func(read func(s amqp.Status) float64) func() float64 {
		return func() float64 { return read(t.transport.Status()) }
	}
	m.gauge("almanac_messaging_connected", "1 where the message broker is connected.", labels,
		status(func(s amqp.Status) float64 { return oneIf(s.Connected) }))
	m.counter("almanac_messaging_reconnects_total", "Connections to the message broker that were made again.", labels,
		status(func(s amqp.Status) float64 { return float64(s.Reconnects) }))
	m.counter("almanac_messaging_unconfirmed_total", "Messages that the broker did not confirm.", labels,
		status(func(s amqp.Status) float64 { return float64(s.Unconfirmed) }))
}

// measureAPI adds the metrics of the role api, beside the API's own.
func (a *App) measureAPI(m metrics, db *store.Store, hosts *inventory.SnapshotCache) {
	m.gauge("almanac_inventory_doubt", "1 where what the hosts seem to be is not believed.", nil,
		func() float64 { return oneIf(hosts.Untrusted(a.clock.now()) != "") })
	m.gauge("almanac_reservations_degraded", "Live reservations that lack a host.", nil, a.degraded)
	a.measurePool(m)
	m.gauge("almanac_database_clock_offset_seconds", "What the database's clock is ahead of this machine's.", nil,
		func() float64 { return a.clock.ahead().Seconds() })
	m.gauge("almanac_database_clock_doubt", "1 where the database's clock is not believed, and nothing is begun that goes by it.", nil,
		func() float64 { return oneIf(a.clock.doubt() != "") })
	for reason := range db.Retries() {
		m.counter("almanac_database_retries_total", "Transactions that were run again, by reason.",
			prometheus.Labels{"reason": reason}, func() float64 { return float64(db.Retries()[reason]) })
	}
	m.counter("almanac_bookings_stale_total", "Commits that were decided again, because another replica was faster.", nil,
		func() float64 { return float64(a.desk.Stale()) })
	m.gauge("almanac_event_lag_seconds", "For how long the event is due that should have been carried out first; 0 where none is.", nil, a.eventLag)
	m.gauge("almanac_replicas", "Replicas that the database shows to be there.", nil,
		func() float64 { return float64(a.replicas.Load()) })
	m.counter("almanac_decisions_lost_total", "Decisions about instances that were not stored.", nil,
		func() float64 { return float64(a.recorder.lostSoFar()) })
	m.registry.MustRegister(a.answers.took)
	a.measureEvictions(m)
	a.switching.seen.measureEnergy(m)
	a.queue.measure(m)
	a.packing.measure(m)
	a.measureImages(m)
	if a.waiting == nil {
		return
	}
	m.gauge("almanac_notifications_waiting", "Changes of which nobody was notified yet; at most 10,000 are counted.", nil,
		func() float64 { count, _ := a.waiting.get(); return float64(count) })
	m.gauge("almanac_notifications_waiting_seconds", "For how long the first of them waits; 0 where none does.", nil,
		func() float64 { _, oldest := a.waiting.get(); return float64(oldest) })
}

func (a *App) degraded() (count float64) {
	for _, r := range a.desk.Live(span.Span{Start: math.MinInt64, End: span.Forever}) {
		count += oneIf(r.Degraded != "")
	}
	return count
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// eventLag returns for how many seconds the oldest due event has waited.
func (a *App) eventLag() float64 {
	now := a.clock.now()
	oldest := now
	for _, r := range a.desk.Live(span.Span{Start: math.MinInt64, End: span.Forever}) {
		if i, ok := lifecycle.Due(&r); ok {
			oldest = min(oldest, r.Events[i].Time)
		}
	}
	return float64(now - oldest)
}

func (a *App) measureEvictions(m metrics) {
	evicted := func() (gone, stayed int64) {
		if a.evictions == nil {
			return 0, 0
		}
		return a.evictions.Evicted()
	}
	const name, help = "almanac_evictions_total", "Preemptible instances that this process chose to make room, by whether they did."
	m.counter(name, help, prometheus.Labels{"outcome": "gone"}, func() float64 { gone, _ := evicted(); return float64(gone) })
	m.counter(name, help, prometheus.Labels{"outcome": "stayed"}, func() float64 { _, stayed := evicted(); return float64(stayed) })
}

// answers measures how long Nova waited for hosts.
type answers struct{ took *prometheus.HistogramVec }

func newAnswers() answers {
	a := answers{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "almanac_placement_duration_seconds", Help: "How long Nova waited for hosts for the instances of a request, by what came of it.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
	}, []string{"outcome"})}
	for _, placed := range []bool{true, false} {
		a.took.WithLabelValues(outcome(placed))
	}
	return a
}

func (a answers) given(took time.Duration, placed bool) {
	a.took.WithLabelValues(outcome(placed)).Observe(took.Seconds())
}

func outcome(placed bool) string {
	if placed {
		return "placed"
	}
	return "no_host"
}
