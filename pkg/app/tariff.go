// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/tariff"
	"github.com/almanac-cloud/almanac/reservation/tariff/feed"
)

// prices is the tariff of this process, and what is told of bookings that could not use it.
type prices struct {
	process
	feed      *feed.Feed // nil without a tariff
	fallbacks *prometheus.CounterVec
}

// openTariff opens the tariff of [tariff], which it reads for the first time, so that no booking misses it.
func openTariff(ctx context.Context, p process) (t *prices, f feature) {
	t = &prices{process: p, fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "almanac_tariff_fallbacks_total", Help: "Bookings that the policy cheapest made by first fit, by reason.",
	}, []string{"reason"})}
	for _, reason := range planning.FallbackReasons {
		t.fallbacks.WithLabelValues(string(reason))
	}
	f.metrics = append(f.metrics, t.fallbacks)
	f.metrics.gauge("almanac_tariff_timestamp_seconds", "Time at which the tariff in use was written; 0 without one.", nil, func() float64 {
		if known := t.known(); known != nil {
			return float64(known.Written)
		}
		return 0
	})
	o := p.config.Tariff
	if o.Source == "" {
		return t, f
	}
	if !strings.Contains(o.Source, "://") {
		o.Source = p.config.ResolvePath(o.Source)
	}
	o.Now = p.clock.now
	t.feed = feed.New(o)
	if err := t.feed.Read(ctx); err != nil {
		p.log.InfoContext(ctx, "the tariff could not be read at the start; its job tries again", "error", err)
	}
	f.jobs = append(f.jobs, t.feed.Job())
	return t, f
}

// known returns the tariff that was read last; nil if there is none.
func (t *prices) known() *tariff.Reading {
	if t.feed == nil {
		return nil
	}
	return t.feed.Newest()
}

// fellBack counts and logs a booking whose start is that of first fit instead of the cheapest.
func (t *prices) fellBack(ctx context.Context, r *reservation.Reservation, why planning.Fallback) {
	t.fallbacks.WithLabelValues(string(why.Reason)).Inc()
	t.log.InfoContext(ctx, "the tariff could not choose the start of a reservation", "reservation", r.ID, "start", r.Span.Start, "reason", why.Text)
}

// needsTariff returns a warning if the default policy has no tariff; empty otherwise.
func needsTariff(c config.Config) string {
	if c.Reservation.Defaults.Policy != calendar.PolicyCheapest || c.Tariff.Source != "" {
		return ""
	}
	return "[reservation] default_policy is cheapest, and there is no [tariff] source: reservations begin as with first-fit; set the source, or choose another policy"
}
