// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"sync"
	"time"
)

// Shared makes one read serve all callers that asked before it began, so that each caller gets a
// result that is not older than its call. One read runs at a time, and callers that arrive while it
// runs share the next one. Set Read and Limit before the first use; T may be struct{} if Read
// itself stores the result. It is safe for concurrent use.
type Shared[T any] struct {
	// Read must not be nil. Its context has the values of the first caller's context, but ends only
	// after Limit: a caller that leaves does not end the read for the others.
	Read  func(ctx context.Context) (T, error)
	Limit time.Duration
	// Young is for how long after its beginning a read that did not fail also serves later callers;
	// 0 means not at all.
	Young time.Duration

	mu    sync.Mutex
	next  *read[T] // has not begun; nil if nobody waits for it
	young *read[T]
	last  *read[T] // the one that began last, or will next
}

// read is one read; value and err are set when over is closed.
type read[T any] struct {
	over  chan struct{}
	value T
	err   error
}

// Get returns the result of a read that began after the call, or of a young one. The error is that
// of the read or, if ctx ends first, that of ctx.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	mine := s.join(ctx)
	select {
	case <-mine.over:
		return mine.value, mine.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// join returns the reading that answers a call made now: one that began after it, started here if there
// is none.
func (s *Shared[T]) join(ctx context.Context) *read[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.young != nil:
		return s.young
	case s.next == nil:
		before := s.last
		s.next = &read[T]{over: make(chan struct{})}
		s.last = s.next
		go s.run(context.WithoutCancel(ctx), s.next, before)
	}
	return s.next
}

// run does a read when the one before is over.
func (s *Shared[T]) run(ctx context.Context, mine, before *read[T]) {
	if before != nil {
		<-before.over
	}
	s.mu.Lock()
	s.next = nil
	if s.Young > 0 {
		s.young = mine
		time.AfterFunc(s.Young, func() { s.age(mine) })
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.Limit)
	defer cancel()
	if mine.value, mine.err = s.Read(ctx); mine.err != nil {
		s.age(mine)
	}
	close(mine.over)
}

// age ends the time for which a read serves later callers.
func (s *Shared[T]) age(old *read[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young == old {
		s.young = nil
	}
}
