package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// databaseClock tells the time of a database.
type databaseClock interface {
	Now(ctx context.Context) (time.Time, error)
}

const (
	clockEvery = 10 * time.Second
	// worthSaying is how far the clocks may be apart before the log has it.
	worthSaying = time.Second
)

// clock tells the database's time, so that all replicas agree on what is due. It
// runs on this machine's clock and is set by the database's.
type clock struct {
	offset atomic.Int64 // what the database's clock is ahead, in nanoseconds
	said   time.Duration
}

func (c *clock) now() span.Instant { return span.At(time.Now().Add(c.ahead())) }

// ahead is what the database's clock is ahead of this machine's.
func (c *clock) ahead() time.Duration { return time.Duration(c.offset.Load()) }

// set asks the database for its time. Between question and answer it lay somewhere
// in between, so that what was known before is corrected only as far as the answer
// contradicts it: a database that stalls must not move the clock.
func (c *clock) set(ctx context.Context, db databaseClock, log *slog.Logger) error {
	asked := time.Now()
	there, err := db.Now(ctx)
	if err != nil {
		return err
	}
	least, most := there.Sub(time.Now()), there.Sub(asked)
	ahead := min(max(c.ahead(), least), most)
	c.offset.Store(int64(ahead))
	if (ahead - c.said).Abs() > worthSaying {
		c.said = ahead
		log.Warn("this machine's clock and the database's differ; the database's counts", "database_ahead", ahead.Round(time.Millisecond))
	}
	return nil
}
