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
	// forgetAfter is how many seconds an instance may take to reach its host.
	forgetAfter = 24 * 3600
)

// GuestRecords stores the instances that were placed by a hint.
type GuestRecords interface {
	// OldGuests returns the instances that were requested before an instant.
	OldGuests(ctx context.Context, before span.Instant) ([]string, error)
	// ForgetGuests deletes those of the instances that were not requested again since then.
	ForgetGuests(ctx context.Context, lease job.Lease, instances []string, before span.Instant) error
}

// ForgettingOptions configure Forgetting.
type ForgettingOptions struct {
	Guests   GuestRecords
	Leases   job.Leases
	Snapshot func() *inventory.Snapshot
	Doubt    func() string
	// Exists reports whether the cloud has an instance; it fails if that is unknown.
	Exists func(ctx context.Context, instance string) (bool, error)
	Now    func() span.Instant
}

// Forgetting returns the job that deletes the records of instances that no longer exist.
func Forgetting(o ForgettingOptions) job.Job {
	return job.Job{Name: "guests that are gone", Every: forgetEvery, Step: job.Leased(o.Leases, "guests that are gone", leaseTTL, o.forget)}
}

// forget deletes the records of instances that were requested long ago and no longer exist. An
// instance on no host may still exist, for example shelved. While the inventory is untrusted
// it deletes nothing.
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
			return wrapForUser(err, "ask Nova for instance %s", id)
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
