// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Told is a lease on which the usage service counts, as it was last told of it.
type Told struct {
	LeaseID string
	Request []byte // the blazar.UsageRequest about its end, as JSON
	AskedAt span.Instant
	// Withdrawn is true if the booking failed, unless it is in doubt and was stored.
	Withdrawn bool
	// Tries is how often the service did not answer when it was told of the end, and Next is the time
	// of the next try.
	Tries int
	Next  span.Instant
}

// Records stores the leases on which the usage service counts.
type Records interface {
	// Tell stores what the service was told of a lease, in place of what it was told before.
	Tell(ctx context.Context, told Told) error
	// Ended returns records whose Next is not after now, at most limit, of leases without a live
	// reservation. A lease that does not exist has ended if it was withdrawn, or if the service was
	// asked about it before an instant.
	Ended(ctx context.Context, now, before span.Instant, limit int) ([]Told, error)
	// Forget deletes the record of a lease, if there is one.
	Forget(ctx context.Context, leaseID string) error
}

const (
	tellEvery = 10 * time.Second
	tellTTL   = time.Minute
	tellBatch = 20
	// longestBooking is how many seconds after the answer of the service a lease may be stored.
	longestBooking = 15 * 60
	// mostTries is how often the service is told of an end. The pauses in between double from
	// firstPause to longestPause seconds, which are two hours in all.
	mostTries    = 10
	firstPause   = 30
	longestPause = 30 * 60
)

// Job returns the job that tells the usage service of the ends of leases.
func (c *Checker) Job(leases job.Leases) job.Job {
	const name = "usage service"
	return job.Job{Name: name, Every: tellEvery, Step: job.Leased(leases, name, tellTTL, func(ctx context.Context, held *job.Held) error {
		return c.TellOfEnds(ctx, held.Ensure)
	})}
}

// TellOfEnds tells the usage service once of each lease that has ended, also after a booking that
// failed. The content of the answer does not matter. Without an answer, a later call tries again, at
// most mostTries times in all. TellOfEnds calls ensure before each request, and stops at its error.
func (c *Checker) TellOfEnds(ctx context.Context, ensure func(context.Context) error) error {
	now := c.Now()
	ended, err := c.Records.Ended(ctx, now, now.Add(-longestBooking), tellBatch)
	if err != nil {
		return err
	}
	for _, told := range ended {
		if err := ensure(ctx); err != nil {
			return err
		}
		if err := c.tellOfEnd(ctx, told); err != nil {
			return err
		}
	}
	return nil
}

// tellOfEnd tells the usage service that a lease has ended. Without an answer it tries again later, at
// most mostTries times.
func (c *Checker) tellOfEnd(ctx context.Context, told Told) error {
	err := c.call(ctx, OnEnd, told.LeaseID, told.Request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, ErrNoAnswer) {
		return c.Records.Forget(ctx, told.LeaseID)
	}
	if told.Tries++; told.Tries == mostTries {
		c.Log.ErrorContext(ctx, "the usage service does not hear of the end of a lease; correct its accounts by hand", "lease", told.LeaseID,
			"tries", told.Tries, "error", err)
		return c.Records.Forget(ctx, told.LeaseID)
	}
	told.Next = c.Now().Add(min(int64(firstPause)<<(told.Tries-1), longestPause))
	return c.Records.Tell(ctx, told)
}
