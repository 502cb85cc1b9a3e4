// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
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
	"github.com/almanac-cloud/almanac/reservation/staging"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// parallelEvents is how many events one replica carries out at once.
const parallelEvents = 16

// openBooking opens the booking service. Its decisions consider images as far as they are known,
// enforcer applies its events to the cloud, and floating those of floating IPs to Neutron; they are
// nil without one. checks must allow bookings, nil if nothing must.
func openBooking(
	ctx context.Context, p process, bus *bus, db *store.Store, hosts *inventory.SnapshotCache, images *imagectl.Known, enforcer booking.Cloud,
	floating *networks, checks *usage.Checker,
) (desk *booking.Service, f feature, err error) {
	c := p.config.Reservation
	o := booking.Options{
		Records: db, Keys: db, Reader: db, Limits: p.config.Limits, Defaults: c.Defaults,
		LeadTime: c.Rules.LeadTime, Migrates: c.Rules.Normal == upkeep.OrderMigrate,
		Images: func() *staging.Facts { return images.Facts(p.clock.now()) }, Cloud: enforcer, Enforcement: checks,
		Replica: p.replica, Parallel: parallelEvents, Deciding: runtime.GOMAXPROCS(0) - 1,
		Now: p.clock.now, Elapsed: stopwatch(), NewID: uuid.NewString,
	}
	if floating != nil {
		o.Addresses, o.Networks = db, floating
	}
	if bus.replicas != nil {
		o.Announce = func() { job.Poke(bus.replicas.stored) }
	}
	if desk, err = booking.Open(ctx, o, hosts.Snapshot()); err != nil {
		return nil, f, err
	}
	f.metrics.booking(desk, p.clock)
	return desk, f, nil
}

// stopwatch returns a function that returns the time since the call of stopwatch.
func stopwatch() func() time.Duration {
	begun := time.Now()
	return func() time.Duration { return time.Since(begun) }
}

func (m *metrics) booking(desk *booking.Service, clock *clock) {
	m.gauge("almanac_reservations_degraded", "Live reservations that lack a host.", nil, func() (count float64) {
		for _, r := range desk.Live(span.Always) {
			count += oneIf(r.Degraded != "")
		}
		return count
	})
	for _, state := range poolStates {
		m.gauge("almanac_pool_hosts", "Reservable hosts by state.", prometheus.Labels{"state": state}, func() float64 {
			now := clock.now()
			return float64(poolHosts(desk.Snapshot(), desk.Promised(now), now)[state])
		})
	}
	late := func() (int, int64) { return lateStarts(desk.Live(span.Always), clock.now()) }
	m.gauge("almanac_starts_late", "Reservations whose start is overdue.", nil,
		func() float64 { count, _ := late(); return float64(count) })
	m.gauge("almanac_starts_late_seconds", "How long the start that is overdue longest has been due; 0 if none is.", nil,
		func() float64 { _, seconds := late(); return float64(seconds) })
	m.gauge("almanac_event_lag_seconds", "How long the event that is overdue longest has been due; 0 if none is.", nil,
		func() float64 { return float64(eventLag(desk.Live(span.Always), clock.now())) })
	m.counter("almanac_booking_conflicts_total", "Decisions that were repeated because another replica committed first.", nil,
		func() float64 { return float64(desk.Stale()) })
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

// lateStarts counts the reservations whose start is overdue, and returns for how many seconds the
// first of them has waited.
func lateStarts(live []reservation.Reservation, now span.Instant) (count int, seconds int64) {
	for i := range live {
		at, due := lifecycle.Due(&live[i])
		if !due || live[i].Events[at].Type != reservation.StartEvent || live[i].Events[at].Time >= now {
			continue
		}
		count++
		seconds = max(seconds, int64(now-live[i].Events[at].Time))
	}
	return count, seconds
}

// eventLag returns for how many seconds the oldest due event has waited.
func eventLag(live []reservation.Reservation, now span.Instant) int64 {
	oldest := now
	for i := range live {
		if at, ok := lifecycle.Due(&live[i]); ok {
			oldest = min(oldest, live[i].Events[at].Time)
		}
	}
	return int64(now - oldest)
}
