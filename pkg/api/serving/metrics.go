// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// metrics are the metrics of calls.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refusals *prometheus.CounterVec

	rateLimited  prometheus.Counter
	authFailures *prometheus.CounterVec
}

func newMetrics(registry *prometheus.Registry) *metrics {
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
