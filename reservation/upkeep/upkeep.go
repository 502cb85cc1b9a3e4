// Package upkeep keeps promises true as time goes by: it carries out what is due
// and clears away what is over. Its jobs are steps; pkg/app lets them run.
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

// Desk is what upkeep needs of the booking desk.
type Desk interface {
	CarryOut(ctx context.Context) (done []booking.Happening, failed map[string]error)
	Prune()
	Woken() <-chan struct{}
}

// KeyPurger forgets idempotency keys that were used before a time and says how many.
type KeyPurger interface {
	PurgeKeys(ctx context.Context, before span.Instant) (int, error)
}

// Options are what upkeep works on, and how often.
type Options struct {
	Desk Desk
	Keys KeyPurger
	// Poll is the longest time between two looks at what is due.
	Poll   time.Duration
	KeyTTL time.Duration
	Now    func() span.Instant
	Log    *slog.Logger
}

const (
	pruneEvery = time.Minute
	purgeEvery = time.Hour
)

// Jobs gives the periodic work.
func Jobs(o Options) []job.Job {
	return []job.Job{
		{Name: "events", Every: o.Poll, Step: o.events, Wake: o.Desk.Woken()},
		{Name: "prune", Every: pruneEvery, Step: o.prune},
		{Name: "idempotency keys", Every: purgeEvery, Step: o.purge},
	}
}

// events carries out what is due.
func (o Options) events(ctx context.Context) error {
	done, failed := o.Desk.CarryOut(ctx)
	for _, h := range done {
		o.Log.Info("reservation event", "event", h.Event.Type, "reservation", h.Reservation.ID,
			"project", h.Reservation.ProjectID, "status", h.Reservation.Status,
			"due", h.Event.Time.String(), "late_seconds", int64(h.Event.Done-h.Event.Time))
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, failed[id])
	}
	return errors.Join(errs...)
}

func (o Options) prune(context.Context) error {
	o.Desk.Prune()
	return nil
}

func (o Options) purge(ctx context.Context) error {
	_, err := o.Keys.PurgeKeys(ctx, o.Now().Add(-int64(o.KeyTTL/time.Second)))
	return err
}
