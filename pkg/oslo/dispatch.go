package oslo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// defaultResponse is rpc_response_timeout: what a caller waits that does
	// not say how long.
	defaultResponse = time.Minute
	// replyPatience is kombu_missing_consumer_retry_timeout: how long a reply
	// is tried whose queue is missing, because the caller may be on its way
	// back to a broker that was restarted.
	replyPatience = time.Minute
	replyPause    = 250 * time.Millisecond
)

// handle does the work of one request and answers it.
func (s *Server) handle(work context.Context, r *Request, expiration time.Duration, release func()) {
	ctx, cancel := WithContext(work, r.Context), context.CancelFunc(func() {})
	switch {
	case r.monitor > 0 && expiration <= r.monitor: // the signs of life keep the caller waiting
	case expiration > 0:
		ctx, cancel = context.WithTimeout(ctx, expiration)
	default:
		ctx, cancel = context.WithTimeout(ctx, defaultResponse)
	}
	defer cancel()
	alive, done := context.WithCancel(ctx)
	if r.id != "" && r.monitor >= 2*time.Second {
		s.running.Go(func() { s.heartbeat(alive, r) })
	}
	result, err := s.dispatch(ctx, r)
	done()
	release()
	if err != nil {
		s.options.Log.Debug("request failed", "topic", s.options.Topic, "method", r.Method,
			"request_id", r.Context.RequestID(), "error", err)
	}
	if r.id == "" {
		return
	}
	answer, cancelAnswer := context.WithTimeout(work, cmp.Or(min(expiration, replyPatience), replyPatience))
	defer cancelAnswer()
	if err := s.answer(answer, r, result, err); err != nil {
		s.options.Log.Warn("gave up on a reply", "topic", s.options.Topic, "method", r.Method,
			"request_id", r.Context.RequestID(), "error", err)
	}
}

// dispatch calls the first endpoint that has the method
// (oslo_messaging/rpc/dispatcher.py, dispatch).
func (s *Server) dispatch(ctx context.Context, r *Request) (result any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("a request made its handler panic", "topic", s.options.Topic,
				"method", r.Method, "panic", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("handle %s: panic: %v", r.Method, cause)
		}
	}()
	if r.wrong != nil {
		return nil, r.wrong
	}
	served := false
	for _, endpoint := range s.options.Endpoints {
		if endpoint.Namespace != r.Namespace || !compatible(cmp.Or(endpoint.Version, "1.0"), r.Version) {
			continue
		}
		served = true
		if handler, ok := endpoint.Methods[r.Method]; ok {
			return handler(ctx, r)
		}
	}
	if served {
		return nil, noSuchMethod(r.Method)
	}
	return nil, unsupportedVersion(r.Version, r.Method)
}

// heartbeat sends signs of life, twice in the time the caller waits for one.
func (s *Server) heartbeat(ctx context.Context, r *Request) {
	beat := time.NewTicker(r.monitor / 2)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			// One that does not arrive is followed by the next.
			_ = s.send(ctx, r, reply{})
		}
	}
}

// answer sends the reply until it is taken or ctx ends. A reply that arrives
// twice does no harm: the caller has forgotten the call.
func (s *Server) answer(ctx context.Context, r *Request, result any, err error) error {
	message := reply{Ending: true}
	if err == nil {
		if message.Result, err = marshal(result); err != nil {
			err = fmt.Errorf("encode result of %s: %w", r.Method, err)
		}
	}
	if err != nil {
		text, encodeErr := remoteError(err).encode()
		if encodeErr != nil {
			return fmt.Errorf("encode failure of %s: %w", r.Method, encodeErr)
		}
		message.Failure = &text
	}
	for {
		err := s.send(ctx, r, message)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(err, ErrUnroutable) {
				return fmt.Errorf("the caller's queue %s is gone", r.replyTo)
			}
			return err
		case <-time.After(replyPause):
		}
	}
}

func (s *Server) send(ctx context.Context, r *Request, message reply) error {
	message.ID, message.Unique = r.id, hexOf(s.options.NewID())
	body, err := seal(message)
	if err != nil {
		return err
	}
	return s.transport.Publish(ctx, Message{Key: r.replyTo, Body: body, Mandatory: true})
}
