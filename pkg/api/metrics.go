// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// metrics are the API's metrics.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refusals *prometheus.CounterVec

	rateLimited  prometheus.Counter
	authFailures *prometheus.CounterVec
	slowStreams  prometheus.Counter
}

func newMetrics(registry *prometheus.Registry, bookings *booking.Service) *metrics {
	registry.MustRegister(liveReservations{bookings, prometheus.NewDesc(
		"almanac_reservations", "Live reservations by status.", []string{"status"}, nil)})
	with := promauto.With(registry)
	m := &metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "almanac_http_requests_total", Help: "Requests answered, by method, route and status.",
		}, []string{"method", "route", "code"}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "almanac_http_request_duration_seconds", Help: "Time to answer a request, by method and route.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"method", "route"}),
		refusals: with.NewCounterVec(prometheus.CounterOpts{
			Name: "almanac_refusals_total", Help: "Requests refused, by the constraint that was not met.",
		}, []string{"constraint"}),
		rateLimited: with.NewCounter(prometheus.CounterOpts{
			Name: "almanac_http_rate_limited_total", Help: "Requests answered with 429, because there were too many.",
		}),
		authFailures: with.NewCounterVec(prometheus.CounterOpts{
			Name: "almanac_auth_failures_total", Help: "Requests that failed authentication, by kind of error.",
		}, []string{"kind"}),
		slowStreams: with.NewCounter(prometheus.CounterOpts{
			Name: "almanac_event_streams_dropped_total", Help: "Event streams that ended because their client read too slowly or had gone.",
		}),
	}
	// A rate knows the first event only if the counter was there before.
	for _, constraint := range reservation.Constraints {
		m.refusals.WithLabelValues(string(constraint))
	}
	for _, kind := range []fault.Kind{fault.Unauthorized, fault.Denied, fault.Unavailable} {
		m.authFailures.WithLabelValues(string(kind))
	}
	return m
}

// measureStreams registers the number of open streams as a metric.
func (s *server) measureStreams() {
	promauto.With(s.Registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "almanac_event_streams", Help: "Open event streams.",
	}, func() float64 { return float64(s.streams.count()) })
}

// measureDatabase registers the result of the health check as a metric.
func (s *server) measureDatabase() {
	promauto.With(s.Registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "almanac_database_up", Help: "1 if the database answers.",
	}, func() float64 {
		if _, err := s.database.look(context.Background()); err != nil {
			return 0
		}
		return 1
	})
}

// liveReservations is a collector of the numbers of live reservations.
type liveReservations struct {
	bookings *booking.Service
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (l liveReservations) Describe(to chan<- *prometheus.Desc) { to <- l.desc }

// Collect implements prometheus.Collector.
func (l liveReservations) Collect(to chan<- prometheus.Metric) {
	counts := l.bookings.Counted().ByStatus
	for _, status := range reservation.LiveStatuses {
		to <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, float64(counts[status]), string(status))
	}
}
