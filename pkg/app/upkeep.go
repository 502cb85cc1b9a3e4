// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

const (
	leaveTimeout = 2 * time.Second
	// waitingEvery is how often the waiting notifications are counted.
	waitingEvery = 15 * time.Second
)

// openUpkeep opens the jobs that carry out events, follow the other replicas and notify users.
func openUpkeep(s shared) (f feature) {
	f.closers = append(f.closers, func() error { return leave(s) })
	bookings, replicas := punctual{s.bookings, s.clock}, &atomic.Int64{}
	o := upkeep.Options{
		Booking: bookings, Promises: s.bookings, Replica: bookings, Presence: s.db, Leases: s.leases(), Keys: s.db,
		Seen: func(running int) { replicas.Store(int64(running)) },
		Poll: s.config.Lifecycle.PollInterval, KeyTTL: s.config.Reservation.IdempotencyKeyTTL,
		Now: s.clock.now, Until: s.clock.until, Log: s.logOf("upkeep"),
	}
	f.metrics.gauge("almanac_replicas", "Running replicas, according to the database.", nil, func() float64 { return float64(replicas.Load()) })
	if r := s.bus.replicas; r != nil {
		o.Changed = r.changed
		f.jobs = append(f.jobs, job.Job{Name: "announcements", Every: time.Hour, Step: r.cast, Wake: r.stored})
	}
	f.jobs = append(f.jobs, upkeep.Jobs(o)...)
	f.jobs = append(f.jobs, upkeep.WaitingJobs(punctualWaiting{s.bookings, s.clock})...)
	if s.bus.notifier == nil {
		return f
	}
	w := &waiting{}
	f.jobs = append(f.jobs, upkeep.Notifications(s.db, s.db, s.bus.notifier), job.Job{
		Name: "notifications waiting", Every: waitingEvery, Step: func(ctx context.Context) error { return w.look(ctx, s.db, s.clock.now) },
	})
	f.metrics.gauge("almanac_notification_outbox_size", "Changes whose notification is not sent yet; counts up to 10,000.", nil,
		func() float64 { count, _ := w.get(); return float64(count) })
	f.metrics.gauge("almanac_notification_outbox_age_seconds", "Age of the oldest change whose notification is not sent yet; 0 if there is none.", nil,
		func() float64 { _, oldest := w.get(); return float64(oldest) })
	return f
}

// leave tells the other replicas that this process has stopped. If the database does not answer,
// they detect it by themselves.
func leave(s shared) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := s.db.Leave(ctx); err != nil {
		s.log.Warn("could not tell the other replicas that this one stops", "error", err)
	}
	return nil
}

// waiting caches how many notifications wait: a scrape of metrics must not wait for the database.
type waiting struct {
	mu     sync.Mutex
	count  int
	oldest int64 // age in seconds; 0 if none waits
}

// outbox returns how many notifications wait, and since when.
type outbox interface {
	Waiting(ctx context.Context) (count int, first span.Instant, err error)
}

func (w *waiting) look(ctx context.Context, changes outbox, now func() span.Instant) error {
	count, first, err := changes.Waiting(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.oldest = count, 0
	if count > 0 {
		w.oldest = max(0, int64(now()-first))
	}
	return nil
}

func (w *waiting) get() (count int, oldest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.oldest
}
