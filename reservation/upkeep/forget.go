// SPDX-License-Identifier: Apache-2.0

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

// InstanceRecords stores the instances that were placed by a hint.
type InstanceRecords interface {
	// OldInstanceRecords returns the instances that were requested before an instant.
	OldInstanceRecords(ctx context.Context, before span.Instant) ([]string, error)
	// ForgetInstanceRecords deletes the records of those of the instances that were not requested
	// again since that instant.
	ForgetInstanceRecords(ctx context.Context, lease job.Lease, instances []string, before span.Instant) error
}

// ForgettingOptions are the dependencies of Forgetting.
type ForgettingOptions struct {
	Records   InstanceRecords
	Leases    job.Leases
	Snapshot  func() *inventory.Snapshot
	Untrusted func() string
	// Exists reports whether the cloud has an instance. It fails if that cannot be determined.
	Exists func(ctx context.Context, instance string) (bool, error)
	Now    func() span.Instant
}

// Forgetting returns the job that deletes the records of instances that no longer exist.
func Forgetting(o ForgettingOptions) job.Job {
	return job.Job{Name: "records of deleted instances", Every: forgetEvery, Step: job.Leased(o.Leases, "records of deleted instances", leaseTTL, o.forget)}
}

// forget deletes the records of instances that were requested long ago and no longer exist. An
// instance on no host may still exist, for example shelved. While the inventory is untrusted
// it deletes nothing.
func (o ForgettingOptions) forget(ctx context.Context, held *job.Held) error {
	if o.Untrusted() != "" {
		return nil
	}
	before := o.Now().Add(-forgetAfter)
	old, err := o.Records.OldInstanceRecords(ctx, before)
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
	if len(gone) == 0 || o.Untrusted() != "" {
		return nil
	}
	return o.Records.ForgetInstanceRecords(ctx, held.Lease, gone, before)
}
