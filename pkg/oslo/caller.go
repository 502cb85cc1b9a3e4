// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"context"
	"time"
)

const (
	// lookTime bounds one look at a caller's queue.
	lookTime = 2 * time.Second
	// looks is how often the server looks at the queue during a caller's patience.
	looks = 12
	// shortestPatience is the least patience that the server assumes.
	shortestPatience = 100 * time.Millisecond
	// mostKept bounds the requests that wait for the return of their callers.
	mostKept = 1000
)

// away reports whether nothing reads the replies to r now: the caller has died, or is still
// reconnecting to a restarted broker. It returns false if the broker does not answer.
func (s *Server) away(ctx context.Context, r *Request) bool {
	queue, err := s.look(ctx, r)
	return err == nil && queue.Consumers == 0
}

// look inspects the queue for the replies to r.
func (s *Server) look(ctx context.Context, r *Request) (QueueStatus, error) {
	if r.replyTo == "" {
		return QueueStatus{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return s.transport.Inspect(ctx, r.replyTo)
}

// back waits for an absent caller, for as long as the caller would wait for a sign of life, and
// reports whether it has returned. After that time a live caller has given up.
func (s *Server) back(ctx context.Context, r *Request, patience time.Duration) bool {
	over, look := time.NewTimer(patience), time.NewTicker(patience/looks)
	defer over.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over.C:
			return !s.away(ctx, r)
		case <-look.C:
			if !s.away(ctx, r) {
				return true
			}
		}
	}
}

// wanted reports whether the caller of r waits for the answer. r holds a worker, which wanted
// releases if it returns false, and also while it waits for an absent caller.
func (s *Server) wanted(ctx context.Context, r *Request, patience time.Duration) bool {
	if r.id == "" || !s.away(ctx, r) {
		return true
	}
	select {
	case s.kept <- struct{}{}:
		defer func() { <-s.kept }()
	default:
		return true // the publication of the answer will find out
	}
	<-s.slots
	if !s.back(ctx, r, patience) {
		s.options.Log.Warn("dropped a request, because its caller is gone", "topic", s.options.Topic, "method", r.Method,
			"request_id", r.Context.RequestID())
		return false
	}
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// unread reports whether the answer to r remains in its queue and nothing has come to read it, or
// the queue is gone with the answer.
func (s *Server) unread(ctx context.Context, r *Request, patience time.Duration) bool {
	if !s.away(ctx, r) || s.back(ctx, r, patience) || ctx.Err() != nil {
		return false
	}
	queue, err := s.look(ctx, r)
	return err == nil && queue.Consumers == 0 && (queue.Messages > 0 || !queue.Exists)
}
