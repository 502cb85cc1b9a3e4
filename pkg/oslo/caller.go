package oslo

import (
	"context"
	"time"
)

const (
	// lookTime bounds one look at whether a caller is there.
	lookTime = 2 * time.Second
	// looks is how often that is looked at while a caller's patience lasts.
	looks = 12
	// shortestPatience is what callers have at least who name less.
	shortestPatience = 100 * time.Millisecond
	// mostKept bounds the requests that are kept until their callers are back.
	mostKept = 1000
)

// away says that nobody reads the replies to r just now: its caller has died, or is on
// its way back to a broker that was restarted. While the broker does not tell, nobody is.
func (s *Server) away(ctx context.Context, r *Request) bool {
	queue, err := s.look(ctx, r)
	return err == nil && queue.Consumers == 0
}

// look looks at the queue for the replies to r.
func (s *Server) look(ctx context.Context, r *Request) (QueueStatus, error) {
	if r.replyTo == "" {
		return QueueStatus{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return s.transport.Inspect(ctx, r.replyTo)
}

// back waits for a caller that is away, for as long as it would wait for a sign of life.
// Afterwards it has given up, if it lives.
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

// wanted says whether somebody waits for the answer to r, which has a worker; it gives
// that up where nobody does. A request whose caller is away waits for it without one.
func (s *Server) wanted(ctx context.Context, r *Request, patience time.Duration) bool {
	if r.id == "" || !s.away(ctx, r) {
		return true
	}
	select {
	case s.kept <- struct{}{}:
		defer func() { <-s.kept }()
	default:
		return true // its answer finds out
	}
	<-s.slots
	if !s.back(ctx, r, patience) {
		s.options.Log.Warn("dropped a request whose caller is gone", "topic", s.options.Topic, "method", r.Method,
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

// unread says that the answer to r lies in its queue and nobody has come to read it, or
// has gone with the queue.
func (s *Server) unread(ctx context.Context, r *Request, patience time.Duration) bool {
	if !s.away(ctx, r) || s.back(ctx, r, patience) || ctx.Err() != nil {
		return false
	}
	queue, err := s.look(ctx, r)
	return err == nil && queue.Consumers == 0 && (queue.Messages > 0 || !queue.Exists)
}
