// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// measureReservations registers the numbers of live reservations as a metric.
func measureReservations(registry *prometheus.Registry, bookings *booking.Service) {
	registry.MustRegister(liveReservations{bookings, prometheus.NewDesc(
		"almanac_reservations", "Live reservations by status.", []string{"status"}, nil)})
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
