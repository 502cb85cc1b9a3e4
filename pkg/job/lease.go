package job

import (
	"context"
	"time"
)

// Lease is the right to do some periodic work, held by one process at a time. Its
// epoch grows with every change of holder: a write that names the epoch does
// nothing once another has taken over.
type Lease struct {
	Name  string
	Epoch int64
}

// Leases gives leases to the processes that share it.
type Leases interface {
	// Take takes a lease for ttl, or prolongs it; held is false where another
	// process has it.
	Take(ctx context.Context, name string, ttl time.Duration) (lease Lease, held bool, err error)
}

// Leased makes a step of one that is only done by whoever holds the lease.
func Leased(leases Leases, name string, ttl time.Duration, step func(ctx context.Context, lease Lease) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		lease, held, err := leases.Take(ctx, name, ttl)
		if err != nil || !held {
			return err
		}
		return step(ctx, lease)
	}
}
