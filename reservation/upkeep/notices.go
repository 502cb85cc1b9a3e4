package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// noticesEvery is how often stale notices of evictions are withdrawn.
const noticesEvery = 5 * time.Minute

// Notices are the entries in instances' metadata that tell owners when an eviction is due.
type Notices struct {
	Key string // of the metadata; the value is a time in RFC 3339
	// Lasts is how many seconds after that time the eviction may still be in progress.
	Lasts int64
	// Withdraw deletes the notice of an instance, unless it has changed since i was read.
	Withdraw func(ctx context.Context, i inventory.Instance) error
}

// stale returns the instances on hosts whose evictions are over: they stayed, moved, or are
// back. A value that is no time is not Almanac's.
func (n *Notices) stale(hosts *inventory.Snapshot, now span.Instant) (list []inventory.Instance) {
	for _, h := range hosts.Hosts() {
		for i := range h.Instances {
			at, err := time.Parse(time.RFC3339, h.Instances[i].Metadata[n.Key])
			if err == nil && now > span.At(at).Add(n.Lasts) {
				list = append(list, h.Instances[i])
			}
		}
	}
	return list
}

// Job returns the job that withdraws stale notices.
func (n *Notices) Job(leases job.Leases, snapshot func() *inventory.Snapshot, now func() span.Instant) job.Job {
	const name = "notices that are over"
	return job.Job{Name: name, Every: noticesEvery, Step: job.Leased(leases, name, leaseTTL, func(ctx context.Context, _ *job.Held) error {
		var errs []error
		for _, i := range n.stale(snapshot(), now()) {
			if err := n.Withdraw(ctx, i); err != nil {
				errs = append(errs, wrapForUser(err, "withdraw the notice of instance %s", i.ID))
			}
		}
		return errors.Join(errs...)
	})}
}
