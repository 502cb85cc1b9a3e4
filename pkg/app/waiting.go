package app

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// waitingEvery is how often the waiting notifications are counted.
const waitingEvery = 15 * time.Second

// waiting caches how many notifications wait: a scrape of metrics must not wait for the database.
type waiting struct {
	mu     sync.Mutex
	count  int
	oldest int64 // age in seconds; 0 if none waits
}

// outbox returns how many notifications wait, and since when.
type outbox interface {
	Waiting(ctx context.Context) (count int, first span.Instant, err error)
}

func (w *waiting) look(ctx context.Context, changes outbox, now func() span.Instant) error {
	count, first, err := changes.Waiting(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.oldest = count, 0
	if count > 0 {
		w.oldest = max(0, int64(now()-first))
	}
	return nil
}

func (w *waiting) get() (count int, oldest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.oldest
}
