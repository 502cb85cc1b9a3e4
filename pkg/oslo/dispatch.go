// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

const (
	// defaultResponse is rpc_response_timeout: the patience of a caller that names none.
	defaultResponse = time.Minute
	// replyPatience is kombu_missing_consumer_retry_timeout: how long the server retries a reply
	// to a missing queue, because the caller may still be reconnecting to a restarted broker.
	replyPatience = time.Minute
	replyPause    = 250 * time.Millisecond
)

// handle serves and answers one request, for which it holds a worker.
func (s *Server) handle(work context.Context, r *Request, expiration time.Duration) {
	ctx, giveUp := context.WithCancel(WithContext(work, r.Context))
	defer giveUp()
	if r.monitor <= 0 || expiration > r.monitor { // otherwise signs of life extend the caller's patience
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(expiration, defaultResponse))
		defer cancel()
	}
	alive, done := context.WithCancel(ctx)
	if r.id != "" && r.monitor >= 2*time.Second {
		s.running.Go(func() { s.heartbeat(alive, r, giveUp) })
	}
	result, err := s.traced(ctx, r)
	done()
	<-s.slots
	if err != nil {
		s.options.Log.Debug("request failed", "topic", s.options.Topic, "method", r.Method,
			"request_id", r.Context.RequestID(), "error", err)
	}
	if r.id == "" {
		return
	}
	if s.tell(work, r, expiration, result, err) && r.undo != nil {
		r.undo()
	}
}

// tell answers r. It reports whether the caller certainly has no result.
func (s *Server) tell(work context.Context, r *Request, expiration time.Duration, result any, failure error) (missed bool) {
	message, failure := encodeReply(r, result, failure)
	returned, err := s.answer(work, r, message, cmp.Or(min(expiration, replyPatience), replyPatience))
	if err != nil {
		s.options.Log.Warn("could not send a reply", "topic", s.options.Topic, "method", r.Method,
			"request_id", r.Context.RequestID(), "error", err)
	}
	switch {
	case failure != nil || returned:
		return true
	case err != nil || r.undo == nil:
		return false
	}
	return s.unread(work, r, r.patience(expiration))
}

// traced dispatches the request as a step of a trace.
func (s *Server) traced(ctx context.Context, r *Request) (result any, err error) {
	ctx, end := s.options.Tracer.Request(ctx, r.Method, r.Context.text, slog.String("topic", s.options.Topic), slog.String("request_id", r.Context.RequestID()))
	result, err = s.dispatch(ctx, r)
	if exception, is := errors.AsType[*RemoteError](err); is { // an answer, such as NoValidHost
		tracing.Note(ctx, slog.String("exception", exception.Class))
		end(nil)
	} else {
		end(err)
	}
	return result, err
}

// dispatch calls the method on the first endpoint that has it (oslo_messaging/rpc/dispatcher.py,
// dispatch).
func (s *Server) dispatch(ctx context.Context, r *Request) (result any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.options.Log.Error("the handler of a request panicked", "topic", s.options.Topic,
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

// heartbeat sends signs of life, two per patience of the caller. It cancels the work if none
// reached the caller in that time because its queue is gone.
func (s *Server) heartbeat(ctx context.Context, r *Request, giveUp context.CancelFunc) {
	beat := time.NewTicker(r.monitor / 2)
	defer beat.Stop()
	for missed := 0; missed < 2; {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		// After any other failure, the next sign of life may still arrive.
		if err := s.send(ctx, r, reply{}); errors.Is(err, ErrUnroutable) {
			missed++
		} else {
			missed = 0
		}
	}
	giveUp()
}

// encodeReply returns the answer for a result or a failure. A result that cannot be encoded
// becomes a failure.
func encodeReply(r *Request, result any, failure error) (reply, error) {
	message := reply{Ending: true}
	if failure == nil {
		if message.Result, failure = Marshal(result); failure == nil {
			return message, nil
		}
		failure = fmt.Errorf("encode result of %s: %w", r.Method, failure)
	}
	text, err := remoteError(failure).encode()
	if err != nil { // a foreign exception: report at least a failure
		text, _ = remoteError(fmt.Errorf("encode failure of %s: %w", r.Method, err)).encode()
	}
	message.Failure = &text
	return message, failure
}

// answer sends the reply until the broker accepts it, the patience is over or ctx ends. A
// duplicate reply does no harm, because the caller has forgotten the call. returned is true if
// every attempt failed because the caller has no queue.
func (s *Server) answer(ctx context.Context, r *Request, message reply, patience time.Duration) (returned bool, err error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	for returned = true; ; {
		err := s.send(ctx, r, message)
		if err == nil {
			return false, nil
		}
		gone := errors.Is(err, ErrUnroutable)
		returned = returned && gone
		select {
		case <-ctx.Done():
			return false, err
		case <-over.C:
			if gone {
				err = fmt.Errorf("the caller's queue %s is gone", r.replyTo)
			}
			return returned, err
		case <-time.After(replyPause):
		}
	}
}

// send sends a part of the reply to a request to its caller's queue.
func (s *Server) send(ctx context.Context, r *Request, message reply) error {
	message.ID, message.Unique = r.id, hexOf(s.options.NewID())
	body, err := seal(message)
	if err != nil {
		return err
	}
	return s.transport.Publish(ctx, Message{Key: r.replyTo, Body: body, Mandatory: true})
}
