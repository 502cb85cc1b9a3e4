// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"iter"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	usage "github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// parallelEvents is how many events one replica carries out at once.
const parallelEvents = 16

// openBooking opens the booking service. Its decisions consider images as far as they are known,
// enforcer applies its events to the cloud, and floating those of floating IPs to Neutron; they are
// nil without one. checks must allow bookings, nil if nothing must. tariff tells what hosts cost.
func openBooking(
	ctx context.Context, p process, bus *bus, db *store.Store, hosts *inventory.SnapshotCache, images *imagectl.Known, enforcer booking.Cloud,
	floating *networks, checks *usage.Checker, tariff *prices,
) (bookings *booking.Service, f feature, err error) {
	c := p.config.Reservation
	o := booking.Options{
		Records: db, Keys: db, Reader: db, Limits: p.config.Limits, Defaults: c.Defaults,
		LeadTime: c.Rules.LeadTime, AnswersHold: planning.LatestPast, Migrates: c.Rules.Normal == upkeep.OrderMigrate,
		Images: func() *staging.Facts { return images.Facts(p.clock.now()) }, Cloud: enforcer, Enforcement: checks,
		Tariff: tariff.known, FellBack: tariff.fellBack,
		Replica: p.replica, Parallel: parallelEvents, Deciding: runtime.GOMAXPROCS(0) - 1,
		Now: p.clock.now, Elapsed: stopwatch(), NewID: uuid.NewString,
	}
	if floating != nil {
		o.Addresses, o.Networks = db, floating
	}
	if bus.replicas != nil {
		o.Announce = func() { job.Poke(bus.replicas.stored) }
	}
	if bookings, err = booking.Open(ctx, o, hosts.Snapshot()); err != nil {
		return nil, f, err
	}
	f.metrics.booking(bookings, p.clock)
	return bookings, f, nil
}

// stopwatch returns a function that returns the time since the call of stopwatch.
func stopwatch() func() time.Duration {
	begun := time.Now()
	return func() time.Duration { return time.Since(begun) }
}

func (m *metrics) booking(bookings *booking.Service, clock *clock) {
	m.gauge("almanac_reservations_degraded", "Live reservations that lack a host.", nil, func() float64 { return float64(bookings.Counted().Degraded) })
	*m = append(*m, poolCollector{bookings, clock, prometheus.NewDesc("almanac_pool_hosts", "Reservable hosts by state.", []string{"state"}, nil)})
	late := func() (int, int64) { now := clock.now(); return lateStarts(bookings.Overdue(now), now) }
	m.gauge("almanac_starts_late", "Reservations whose start is overdue.", nil,
		func() float64 { count, _ := late(); return float64(count) })
	m.gauge("almanac_starts_late_seconds", "How long the start that is overdue longest has been due; 0 if none is.", nil,
		func() float64 { _, seconds := late(); return float64(seconds) })
	m.gauge("almanac_event_lag_seconds", "How long the event that is overdue longest has been due; 0 if none is.", nil,
		func() float64 { now := clock.now(); return float64(eventLag(bookings.Overdue(now), now)) })
	m.counter("almanac_booking_conflicts_total", "Decisions that were repeated because another replica committed first.", nil,
		func() float64 { return float64(bookings.Stale()) })
	m.counter("almanac_holds_expired_total", "Holds that ended because nobody confirmed them, in the process that ended them.", nil,
		func() float64 { return float64(bookings.Expired()) })
	m.counter("almanac_reservations_booked_from_waiting_total", "Reservations that waited and were booked once there was room, in the process that booked them.", nil,
		func() float64 { return float64(bookings.BookedFromWaiting()) })
	m.counter("almanac_reservations_moved_total", "Reservations that were moved to make room for others, in the process that moved them.", nil,
		func() float64 { return float64(bookings.Moved()) })
}

// poolCollector is the collector of the hosts of the pool by state.
type poolCollector struct {
	bookings *booking.Service
	clock    *clock
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p poolCollector) Describe(to chan<- *prometheus.Desc) { to <- p.desc }

// Collect implements prometheus.Collector.
func (p poolCollector) Collect(to chan<- prometheus.Metric) {
	now := p.clock.now()
	counts := poolHosts(p.bookings.Snapshot(), p.bookings.Promised(now), now)
	for _, state := range poolStates {
		to <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(counts[state]), state)
	}
}

// poolStates are the states of a host of the pool; it is always in exactly one.
var poolStates = []string{"promised", "failed", "occupied", "free"}

// poolHosts counts the hosts of the pool by state. promised has the first claim from now on of
// each host.
func poolHosts(hosts *inventory.Snapshot, promised []reservation.Claim, now span.Instant) map[string]int {
	taken := make(map[string]bool, len(promised))
	for _, c := range promised {
		taken[c.Host] = c.Span.Start <= now
	}
	count := make(map[string]int, len(poolStates))
	for _, h := range hosts.Hosts() {
		switch {
		case !h.Reservable:
		case taken[h.Name]:
			count["promised"]++
		case h.Failure() != "":
			count["failed"]++
		case h.InstanceCount > 0:
			count["occupied"]++
		default:
			count["free"]++
		}
	}
	return count
}

// lateStarts counts, among reservations with an overdue event, those whose start is overdue, and returns for how many
// seconds the first of them has waited.
func lateStarts(overdue iter.Seq[*reservation.Reservation], now span.Instant) (count int, seconds int64) {
	for r := range overdue {
		at, due := lifecycle.Due(r)
		if !due || r.Events[at].Type != reservation.StartEvent || r.Events[at].Time >= now {
			continue
		}
		count++
		seconds = max(seconds, int64(now-r.Events[at].Time))
	}
	return count, seconds
}

// eventLag returns for how many seconds the event has waited that is overdue longest, which is that of the first
// reservation.
func eventLag(overdue iter.Seq[*reservation.Reservation], now span.Instant) int64 {
	for r := range overdue {
		if at, due := lifecycle.Due(r); due {
			return int64(now - r.Events[at].Time)
		}
	}
	return 0
}
