// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// Waiting is what the jobs for what waits for room need of booking.
type Waiting interface {
	BookFreed(ctx context.Context) error
	BookAll(ctx context.Context) error
	// Room receives a value when there may be room.
	Room() <-chan struct{}
}

// bookAllEvery is how often everything that waits is looked at: time alone makes room too.
const bookAllEvery = time.Minute

// WaitingJobs returns the jobs that book what waits for room.
func WaitingJobs(w Waiting) []job.Job {
	return []job.Job{
		{Name: "room for what waits", Every: bookAllEvery, Step: w.BookFreed, Wake: w.Room()},
		{Name: "all that waits", Every: bookAllEvery, Step: w.BookAll},
	}
}
