package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation"
)

// Outbox keeps the changes of which nobody was told yet.
type Outbox interface {
	// Unsent gives them in order, limit of them at most.
	Unsent(ctx context.Context, limit int) ([]reservation.Change, error)
	MarkSent(ctx context.Context, lease job.Lease, places []int64) error
}

// Notifier tells the world of a change. It returns when the message is safe.
type Notifier interface {
	Notify(ctx context.Context, change reservation.Change) error
}

const (
	notifyEvery = time.Second
	notifyBatch = 100
)

// Notifications gives the job that empties the outbox: each change is sent at least
// once, in order, by one replica at a time.
func Notifications(leases job.Leases, outbox Outbox, notifier Notifier) job.Job {
	n := notifications{outbox, notifier}
	return job.Job{Name: "notifications", Every: notifyEvery, Step: job.Leased(leases, "notifications", leaseTTL, n.send)}
}

type notifications struct {
	outbox   Outbox
	notifier Notifier
}

func (n notifications) send(ctx context.Context, lease job.Lease) error {
	for {
		changes, err := n.outbox.Unsent(ctx, notifyBatch)
		if err != nil || len(changes) == 0 {
			return err
		}
		var sent []int64
		var failed error
		for _, change := range changes {
			if failed = n.notifier.Notify(ctx, change); failed != nil {
				failed = fmt.Errorf("notify of %s of reservation %s: %w", change.Action, change.Reservation.ID, failed)
				break
			}
			sent = append(sent, change.Place)
		}
		if len(sent) > 0 {
			if err := n.outbox.MarkSent(ctx, lease, sent); err != nil {
				return err
			}
		}
		if failed != nil || len(changes) < notifyBatch {
			return failed
		}
	}
}
