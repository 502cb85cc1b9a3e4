// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Outbox stores the changes for which no notification was sent yet.
type Outbox interface {
	// Unsent returns these changes in order, at most limit.
	Unsent(ctx context.Context, limit int) ([]reservation.Change, error)
	MarkSent(ctx context.Context, lease job.Lease, places []int64) error
}

// Notifier sends the notification of a change. It returns when the broker has stored the message.
type Notifier interface {
	Notify(ctx context.Context, change reservation.Change) error
}

const (
	notifyEvery = time.Second
	notifyBatch = 100
	// batchTime is the time after which a batch begins no further message, so that the messages
	// sent so far are marked soon.
	batchTime = 4 * time.Second
	// sendTimeout limits how long one message waits for the broker.
	sendTimeout = 6 * time.Second
)

// Notifications returns the job that empties the outbox: each change is sent at least
// once, in order, by one replica at a time.
func Notifications(leases job.Leases, outbox Outbox, notifier Notifier) job.Job {
	n := notifications{outbox, notifier}
	return job.Job{Name: "notifications", Every: notifyEvery, Step: job.Leased(leases, "notifications", leaseTTL, n.send)}
}

type notifications struct {
	outbox   Outbox
	notifier Notifier
}

// send sends all waiting notifications, in batches.
func (n notifications) send(ctx context.Context, held *job.Held) error {
	for {
		more, err := n.sendBatch(ctx, held.Lease)
		if err != nil || !more {
			return err
		}
		if err := held.Ensure(ctx); err != nil {
			return err
		}
	}
}

// sendBatch sends a batch, and reports whether more may wait. It marks what was sent even if a
// later message fails.
func (n notifications) sendBatch(ctx context.Context, lease job.Lease) (more bool, err error) {
	changes, err := n.outbox.Unsent(ctx, notifyBatch)
	if err != nil {
		return false, err
	}
	var sent []int64
	var failed error
	beginning, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	for _, change := range changes {
		if len(sent) > 0 && beginning.Err() != nil {
			break
		}
		if failed = n.sendOne(ctx, change); failed != nil {
			break
		}
		sent = append(sent, change.Place)
	}
	if len(sent) > 0 {
		if err := n.outbox.MarkSent(ctx, lease, sent); err != nil {
			return false, err
		}
	}
	return len(sent) < len(changes) || len(changes) == notifyBatch, failed
}

func (n notifications) sendOne(ctx context.Context, change reservation.Change) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return fault.While(n.notifier.Notify(ctx, change), "notify of %s of reservation %s", change.Action, change.Reservation.ID)
}

// noticesEvery is the interval in which stale notices of evictions are withdrawn.
const noticesEvery = 5 * time.Minute

// Notices are the entries in instances' metadata from which owners learn when an eviction is due.
type Notices struct {
	Key string // of the metadata; the value is a time in RFC 3339
	// Lasts is for how many seconds after that time the eviction may still be in progress.
	Lasts int64
	// Withdraw deletes the notice of an instance, unless it has changed since i was read.
	Withdraw func(ctx context.Context, i inventory.Instance) error
}

// stale returns the instances on hosts whose notice is due and past: they stayed, moved, or are
// back. A value that is not a time was not written by Almanac, and is ignored.
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
