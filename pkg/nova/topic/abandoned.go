package topic

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// askTime bounds how long Nova is asked whether it still waits for a request.
const askTime = 5 * time.Second

// abandoned is why a request finds no hosts that its conductor has given up.
const abandoned = "Nova does not wait for this request any more: nobody served it in time"

// givenUp reports whether the conductor has stopped waiting for a request that lay in the
// queue for long: while nobody served the topic, or all workers were busy. The conductor is
// alive then, and its message outlives its patience (nova/scheduler/rpcapi.py
// select_destinations: rpc_response_timeout without a sign of life, and long_rpc_timeout for
// the message), so that only the instances tell. Where Nova cannot be asked, it waits.
func (s *Service) givenUp(ctx context.Context, r *oslo.Request, q *question, now span.Instant) bool {
	if s.Waits == nil || !old(r, now) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, instance := range q.request.Instances {
		waits, err := s.Waits(ctx, instance)
		if err != nil {
			s.Log.WarnContext(ctx, "nobody knows whether Nova still waits for an old request; it is answered", "request_id", q.request.ID, "error", err)
			return false
		}
		if waits {
			return false
		}
	}
	return len(q.request.Instances) > 0
}

// old reports whether a conductor may have given up a request by now. A user's request is
// as old as its context at most; half of the patience is for clocks that differ.
func old(r *oslo.Request, now span.Instant) bool {
	begun := r.Context.Timestamp()
	return !begun.IsZero() && now.Time().Sub(begun) > r.Patience()/2
}

// refuse answers a request with a refusal, and keeps that.
func (s *Service) refuse(q *question, at span.Instant, refusal string, considered int) (any, error) {
	s.Decisions.Keep(placing.Decision{
		RequestID: q.request.ID, ProjectID: q.request.ProjectID, Instances: q.request.Instances,
		Way: s.way(q), At: at, Reason: refusal, Considered: considered,
	})
	return nil, noValidHost(sentence(refusal))
}
