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
	// No message of a batch is begun after batchTime, and none waits for its broker
	// after batchEnd: what is left of the lease is for noting what was sent. Else a
	// slow broker would let the lease go to another replica, which sends all again.
	batchTime = leaseTTL / 2
	batchEnd  = leaseTTL * 3 / 4
)

// Notifications returns the job that empties the outbox: each change is sent at least
// once, in order, by one replica at a time.
func Notifications(leases job.Leases, outbox Outbox, notifier Notifier) job.Job {
	n := notifications{leases, outbox, notifier}
	return job.Job{Name: "notifications", Every: notifyEvery, Step: n.send}
}

type notifications struct {
	leases   job.Leases
	outbox   Outbox
	notifier Notifier
}

// send sends all that waits, with a new lease for each batch.
func (n notifications) send(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = n.sendBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch sends a batch within the time of one lease, and reports whether more may wait.
func (n notifications) sendBatch(ctx context.Context) (more bool, err error) {
	// Both begin before the lease does, so that they are over before it is.
	beginning, stop := context.WithTimeout(ctx, batchTime)
	defer stop()
	sending, end := context.WithTimeout(ctx, batchEnd)
	defer end()
	lease, held, err := n.leases.Take(ctx, "notifications", leaseTTL)
	if err != nil || !held {
		return false, err
	}
	changes, err := n.outbox.Unsent(ctx, notifyBatch)
	if err != nil {
		return false, err
	}
	var sent []int64
	var failed error
	for _, change := range changes {
		if len(sent) > 0 && beginning.Err() != nil {
			break
		}
		if failed = n.notifier.Notify(sending, change); failed != nil {
			failed = fmt.Errorf("notify of %s of reservation %s: %w", change.Action, change.Reservation.ID, failed)
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
