// SPDX-License-Identifier: Apache-2.0

// Package upkeep keeps reservations true over time. It carries out due events, reads what
// other replicas have stored, continues the work of stopped replicas, sends notifications,
// and clears up after ended reservations. Its jobs are steps; pkg/app runs them.
package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Booking is what the events job needs of booking.
type Booking interface {
	CarryOut(ctx context.Context) (done []booking.Happening, failed map[string]error)
	Prune()
	Woken() <-chan struct{}
	NextDue() (at span.Instant, ok bool)
}

// Replica is what the jobs for other replicas need of booking.
type Replica interface {
	Follow(ctx context.Context) error
	Resync(ctx context.Context) error
	TakeOver(ctx context.Context, gone func(replica string) bool) error
}

// Presence records which replicas are running.
type Presence interface {
	// Present records that this replica runs for another ttl, and returns all running
	// replicas.
	Present(ctx context.Context, ttl time.Duration) (replicas []string, err error)
}

// KeyPurger deletes the idempotency keys that were created before a time, and returns how many it
// deleted.
type KeyPurger interface {
	PurgeKeys(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
}

// Options configure Jobs.
type Options struct {
	Booking  Booking
	Promises Promises
	Replica  Replica
	Presence Presence
	Leases   job.Leases
	Keys     KeyPurger
	// Poll is the longest time between two checks for due events and for changes by other
	// replicas. An event that this process knows is begun at its time.
	Poll time.Duration
	// Changed receives a value when another replica has stored something, so that Follow
	// runs sooner. It may be nil.
	Changed <-chan struct{}
	// Seen is called with the number of running replicas at each check.
	Seen   func(replicas int)
	KeyTTL time.Duration
	Now    func() span.Instant
	// Until returns in how much time an instant begins; it is negative after that.
	Until func(span.Instant) time.Duration
	Log   *slog.Logger
}

const (
	pruneEvery    = time.Minute
	purgeEvery    = time.Hour
	resyncEvery   = 5 * time.Minute
	presenceEvery = 2 * time.Second
	presenceTTL   = 8 * time.Second
	leaseTTL      = presenceTTL
)

// Jobs returns the periodic jobs.
func Jobs(o Options) []job.Job {
	waiting := map[string]bool{}
	return []job.Job{
		{Name: "events", Every: o.Poll, Step: func(ctx context.Context) error { return o.events(ctx, waiting) }, Wake: o.Booking.Woken(), Due: o.due},
		{Name: "follow", Every: o.Poll, Step: o.Replica.Follow, Wake: o.Changed},
		{Name: "resync", Every: resyncEvery, Step: o.Replica.Resync},
		{Name: "presence", Every: presenceEvery, Step: o.presence},
		{Name: "prune", Every: pruneEvery, Step: o.prune},
		{Name: "idempotency keys", Every: purgeEvery, Step: job.Leased(o.Leases, "idempotency keys", leaseTTL, o.purge)},
	}
}

// due returns in how much time the next event is due.
func (o Options) due() (in time.Duration, known bool) {
	at, known := o.Booking.NextDue()
	if !known {
		return 0, false
	}
	return o.Until(at), true
}

// events carries out what is due. It logs once that a start waits for a host to wake, and
// does not count it as a failure. waiting contains the live reservations for which that was
// logged.
func (o Options) events(ctx context.Context, waiting map[string]bool) error {
	done, failed := o.Booking.CarryOut(ctx)
	for _, h := range done {
		delete(waiting, h.Reservation.ID)
		o.Log.Info("reservation event", "event", h.Event.Type, "reservation", h.Reservation.ID,
			"project", h.Reservation.ProjectID, "status", h.Reservation.Status,
			"due", h.Event.Time.String(), "late_seconds", int64(h.Event.Done-h.Event.Time))
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		if _, waits := errors.AsType[sleeper](failed[id]); !waits {
			errs = append(errs, failed[id])
		} else if !waiting[id] {
			waiting[id] = true
			o.Log.Info("a reservation waits for a host to wake", "reservation", id, "reason", failed[id])
		}
	}
	maps.DeleteFunc(waiting, func(id string, _ bool) bool {
		_, live := o.Promises.Reservation(id)
		return !live
	})
	return errors.Join(errs...)
}

// presence records that this replica runs, and takes over the events of replicas that no
// longer run.
func (o Options) presence(ctx context.Context) error {
	there, err := o.Presence.Present(ctx, presenceTTL)
	if err != nil {
		return err
	}
	o.Seen(len(there))
	return o.Replica.TakeOver(ctx, func(replica string) bool { return !slices.Contains(there, replica) })
}

func (o Options) prune(context.Context) error {
	o.Booking.Prune()
	return nil
}

func (o Options) purge(ctx context.Context, held *job.Held) error {
	_, err := o.Keys.PurgeKeys(ctx, held.Lease, o.Now().Add(-int64(o.KeyTTL/time.Second)))
	return err
}
