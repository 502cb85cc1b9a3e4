// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const snapshotsEvery = 10 * time.Second

// Imager makes images of the instances of reservations.
type Imager interface {
	// Of returns the instances that were created in the reservation, wherever they are.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
	// Snapshot orders an image of an instance, unless anybody has ordered one since an instant. It
	// fails with a Conflict fault if the state of the instance does not allow it.
	Snapshot(ctx context.Context, i inventory.Instance, name string, since span.Instant) error
}

// SnapshotOptions are the dependencies of Snapshots.
type SnapshotOptions struct {
	Images   Imager
	Promises Promises
	Leases   job.Leases
	Log      *slog.Logger
}

// Snapshots returns the job that makes an image of each instance of a reservation whose end action
// is reservation.EndSnapshot, after its owner was warned of the end. An image that fails is ordered
// again until the end, which does not wait for it.
func Snapshots(o SnapshotOptions) job.Job {
	const name = "snapshots before the end"
	finished := map[string]span.Instant{} // by reservation, the warning after which all images were ordered
	return job.Job{Name: name, Every: snapshotsEvery, Step: job.Leased(o.Leases, name, leaseTTL, func(ctx context.Context, _ *job.Held) error {
		return o.step(ctx, finished)
	})}
}

func (o SnapshotOptions) step(ctx context.Context, finished map[string]span.Instant) error {
	var errs []error
	due := map[string]bool{}
	for _, r := range o.Promises.Live(span.Always) {
		warned, ok := warnedOfEnd(&r)
		if !ok {
			continue
		}
		due[r.ID] = true
		if finished[r.ID] == warned {
			continue
		}
		if err := o.snapshot(ctx, r, warned); err != nil {
			errs = append(errs, err)
			continue
		}
		finished[r.ID] = warned
	}
	for id := range finished {
		if !due[id] {
			delete(finished, id)
		}
	}
	return errors.Join(errs...)
}

// warnedOfEnd returns when the owner of an active reservation with the end action
// reservation.EndSnapshot was warned; ok is false for all other reservations.
func warnedOfEnd(r *reservation.Reservation) (at span.Instant, ok bool) {
	if r.Status != reservation.Active || r.Membership.EndAction != reservation.EndSnapshot {
		return 0, false
	}
	e, ok := r.LastEvent(reservation.BeforeEndEvent)
	return e.Time, ok && e.State == reservation.EventDone
}

// snapshot orders the images of a reservation's instances. It continues after an error.
func (o SnapshotOptions) snapshot(ctx context.Context, r reservation.Reservation, since span.Instant) error {
	instances, err := o.Images.Of(ctx, r)
	if err != nil {
		return wrapForUser(err, "find the instances of the reservation")
	}
	var errs []error
	for _, i := range slices.DeleteFunc(instances, func(i inventory.Instance) bool { return i.ReservationID() != r.ID }) {
		err := o.Images.Snapshot(ctx, i, snapshotPrefix+i.Name, since)
		switch {
		case err == nil:
			o.Log.InfoContext(ctx, "an image of the instance is made before the end", "reservation", r.ID, "instance", i.ID)
		case fault.Is(err, fault.Conflict): // for example, it is being resized
			o.Log.InfoContext(ctx, "Nova cannot make an image of the instance now; retrying until the end", "reservation", r.ID, "instance", i.ID, "error", err)
			errs = append(errs, err)
		default:
			errs = append(errs, wrapForUser(err, "make an image of instance %s", i.ID))
		}
	}
	return errors.Join(errs...)
}

// snapshotPrefix begins the names of the images, as in Blazar ([nova] image_prefix).
const snapshotPrefix = "reserved_"
