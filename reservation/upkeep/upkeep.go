// Package upkeep keeps promises true as time goes by: it carries out what is due,
// learns what other replicas have stored, takes up what a replica that is gone has
// left undone, sends notifications, and clears away what is over. Its jobs are
// steps; pkg/app lets them run.
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

// Desk is what upkeep needs of the booking desk for the events.
type Desk interface {
	CarryOut(ctx context.Context) (done []booking.Happening, failed map[string]error)
	Prune()
	Woken() <-chan struct{}
}

// Replica is what upkeep needs of the booking desk for the other replicas.
type Replica interface {
	Follow(ctx context.Context) error
	Resync(ctx context.Context) error
	TakeOver(ctx context.Context, gone func(replica string) bool) error
}

// Presence knows which replicas are there.
type Presence interface {
	// Present says that this replica is there for another ttl, and names all that
	// are.
	Present(ctx context.Context, ttl time.Duration) (replicas []string, err error)
}

// KeyPurger forgets idempotency keys that were used before a time and says how many.
type KeyPurger interface {
	PurgeKeys(ctx context.Context, lease job.Lease, before span.Instant) (int, error)
}

// Options are what upkeep works on, and how often.
type Options struct {
	Desk     Desk
	Replica  Replica
	Presence Presence
	Leases   job.Leases
	Keys     KeyPurger
	// Poll is the longest time between two looks at what is due and at what other
	// replicas have stored.
	Poll time.Duration
	// Changed tells that another replica has stored something; it only makes Follow
	// faster. Nil never tells.
	Changed <-chan struct{}
	// Seen is told how many replicas are there whenever this one looks.
	Seen   func(replicas int)
	KeyTTL time.Duration
	Now    func() span.Instant
	Log    *slog.Logger
}

const (
	pruneEvery    = time.Minute
	purgeEvery    = time.Hour
	resyncEvery   = 5 * time.Minute
	presenceEvery = 2 * time.Second
	presenceTTL   = 8 * time.Second
	leaseTTL      = presenceTTL
)

// Jobs gives the periodic work.
func Jobs(o Options) []job.Job {
	waiting := map[string]bool{}
	return []job.Job{
		{Name: "events", Every: o.Poll, Step: func(ctx context.Context) error { return o.events(ctx, waiting) }, Wake: o.Desk.Woken()},
		{Name: "follow", Every: o.Poll, Step: o.Replica.Follow, Wake: o.Changed},
		{Name: "resync", Every: resyncEvery, Step: o.Replica.Resync},
		{Name: "presence", Every: presenceEvery, Step: o.presence},
		{Name: "prune", Every: pruneEvery, Step: o.prune},
		{Name: "idempotency keys", Every: purgeEvery, Step: job.Leased(o.Leases, "idempotency keys", leaseTTL, o.purge)},
	}
}

// events carries out what is due. That a start waits for a host to wake is told once, and
// is no failure: waiting are the reservations of which it was told.
func (o Options) events(ctx context.Context, waiting map[string]bool) error {
	done, failed := o.Desk.CarryOut(ctx)
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
	return errors.Join(errs...)
}

// presence shows that this replica is there, and takes over what those that are
// gone have left undone.
func (o Options) presence(ctx context.Context) error {
	there, err := o.Presence.Present(ctx, presenceTTL)
	if err != nil {
		return err
	}
	o.Seen(len(there))
	return o.Replica.TakeOver(ctx, func(replica string) bool { return !slices.Contains(there, replica) })
}

func (o Options) prune(context.Context) error {
	o.Desk.Prune()
	return nil
}

func (o Options) purge(ctx context.Context, held *job.Held) error {
	_, err := o.Keys.PurgeKeys(ctx, held.Lease, o.Now().Add(-int64(o.KeyTTL/time.Second)))
	return err
}
