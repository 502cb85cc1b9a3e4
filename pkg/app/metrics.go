package app

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// measure registers what this process tells beside the API's own metrics.
func (a *App) measure(registry *prometheus.Registry, bus *bus) {
	gauge := func(name, help string, labels prometheus.Labels, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	counter := func(name, help string, labels prometheus.Labels, value func() float64) {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, value))
	}
	gauge("almanac_database_clock_offset_seconds", "What the database's clock is ahead of this machine's.", nil,
		func() float64 { return a.clock.ahead().Seconds() })
	gauge("almanac_event_lag_seconds", "For how long the event is due that should have been carried out first; 0 where none is.", nil, a.eventLag)
	for _, t := range bus.transports {
		labels := prometheus.Labels{"transport": t.name}
		status := func(read func(s amqp.Status) float64) func() float64 {
			return func() float64 { return read(t.transport.Status()) }
		}
		gauge("almanac_messaging_connected", "1 where the message broker is connected.", labels, status(func(s amqp.Status) float64 {
			if s.Connected {
				return 1
			}
			return 0
		}))
		counter("almanac_messaging_reconnects_total", "Connections to the message broker that were made again.", labels,
			status(func(s amqp.Status) float64 { return float64(s.Reconnects) }))
		counter("almanac_messaging_unconfirmed_total", "Messages that the broker did not confirm.", labels,
			status(func(s amqp.Status) float64 { return float64(s.Unconfirmed) }))
	}
}

// eventLag is for how many seconds the oldest event is due.
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
