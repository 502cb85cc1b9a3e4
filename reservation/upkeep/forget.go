package upkeep

import (
	"context"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	forgetEvery = time.Hour
	// forgetAfter is for how many seconds an instance may be on its way to a host.
	forgetAfter = 24 * 3600
)

// GuestRecords remembers instances that were placed by a hint.
type GuestRecords interface {
	// OldGuests gives those that were asked for before an instant.
	OldGuests(ctx context.Context, before span.Instant) ([]string, error)
	// ForgetGuests forgets some that were not asked for again since.
	ForgetGuests(ctx context.Context, lease job.Lease, instances []string, before span.Instant) error
}

// ForgettingOptions are what Forgetting works on.
type ForgettingOptions struct {
	Guests   GuestRecords
	Leases   job.Leases
	Snapshot func() *inventory.Snapshot
	Doubt    func() string
	// Exists asks the cloud for an instance; it fails where that cannot be told.
	Exists func(ctx context.Context, instance string) (bool, error)
	Now    func() span.Instant
}

// Forgetting gives the job that forgets the guests that are gone.
func Forgetting(o ForgettingOptions) job.Job {
	return job.Job{Name: "guests that are gone", Every: forgetEvery, Step: job.Leased(o.Leases, "guests that are gone", leaseTTL, o.forget)}
}

// forget forgets those that were asked for long ago and are gone. One that is on no host
// may yet be there, shelved; in doubt none is forgotten.
func (o ForgettingOptions) forget(ctx context.Context, held *job.Held) error {
	if o.Doubt() != "" {
		return nil
	}
	before := o.Now().Add(-forgetAfter)
	old, err := o.Guests.OldGuests(ctx, before)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, h := range o.Snapshot().Hosts() {
		for i := range h.Instances {
			there[h.Instances[i].ID] = true
		}
	}
	var gone []string
	for _, id := range slices.DeleteFunc(old, func(id string) bool { return there[id] }) {
		exists, err := o.Exists(ctx, id)
		if err != nil {
			return told(err, "ask for instance %s", id)
		}
		if !exists {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 || o.Doubt() != "" {
		return nil
	}
	return o.Guests.ForgetGuests(ctx, held.Lease, gone, before)
}
