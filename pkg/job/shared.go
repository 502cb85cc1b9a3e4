package job

import (
	"context"
	"sync"
	"time"
)

// Shared lets one read serve all callers that asked before it began, so that each caller
// sees what was so at its call or later. One read runs at a time, and the callers that come
// meanwhile share the next one. Set Read and Limit before the first use; T may be struct{}
// where Read stores what it found. It is safe for concurrent use.
type Shared[T any] struct {
	// Read must not be nil. Its context has the values of the first caller's, but ends only
	// after Limit: no caller that leaves takes the read away from the others.
	Read  func(ctx context.Context) (T, error)
	Limit time.Duration
	// Young is how long after it began a read also serves later callers, if it did not
	// fail; 0: none.
	Young time.Duration

	mu    sync.Mutex
	next  *read[T] // has not begun; nil where nobody waits for it
	young *read[T]
	last  *read[T] // the one that began last, or will next
}

// read is one read; value and err are set when over is closed.
type read[T any] struct {
	over  chan struct{}
	value T
	err   error
}

// Get returns the result of a read that began after the call, or of a young one. Its error
// is the read's, or the context's where that ends first.
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

// age ends the time in which a read serves later callers.
func (s *Shared[T]) age(old *read[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young == old {
		s.young = nil
	}
}
