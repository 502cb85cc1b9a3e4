package dispatch

import (
	"context"
	"sync/atomic"
	"time"
)

// readings lets one reading of all hosts serve all requests that have waited for it.
type readings struct {
	turn        chan struct{} // holds one while somebody reads
	begun, good atomic.Int64  // the numbers of the last that has begun, and that has come to its end
}

// readTime bounds a reading that requests wait for.
const readTime = 10 * time.Second

// afterNow returns when a reading has come to its end that has begun after the call.
func (r *readings) afterNow(ctx context.Context, read func(ctx context.Context) error) error {
	before := r.begun.Load()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.good.Load() > before {
		return nil // another has read since
	}
	number := r.begun.Add(1)
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err := read(ctx)
	if err == nil {
		r.good.Store(number)
	}
	return err
}
