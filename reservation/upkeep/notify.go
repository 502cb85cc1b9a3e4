package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation"
)

// Outbox stores the changes that nobody was notified of yet.
type Outbox interface {
	// Unsent returns them in order, at most limit.
	Unsent(ctx context.Context, limit int) ([]reservation.Change, error)
	MarkSent(ctx context.Context, lease job.Lease, places []int64) error
}

// Notifier sends a change. It returns when the message is safe.
type Notifier interface {
	Notify(ctx context.Context, change reservation.Change) error
}

const (
	notifyEvery = time.Second
	notifyBatch = 100
	// batchTime is after how long a batch begins no further message, so that what was sent
	// is marked soon.
	batchTime = 4 * time.Second
	// sendTimeout bounds how long one message waits for its broker.
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

// send sends all that waits, in batches.
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
	if err := n.notifier.Notify(ctx, change); err != nil {
		return fmt.Errorf("notify of %s of reservation %s: %w", change.Action, change.Reservation.ID, err)
	}
	return nil
}
