// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// waitsTimeout limits the call to Nova that finds out whether it still waits for a request.
const waitsTimeout = 5 * time.Second

// abandoned is the reason of the refusal for a request that its conductor has given up.
const abandoned = "Nova does not wait for this request any more: nobody served it in time"

// givenUp reports whether the conductor has stopped waiting for a request that was in the queue for
// long, because nobody served the topic or all workers were busy. The message outlives the patience
// of the conductor (nova/scheduler/rpcapi.py select_destinations: rpc_response_timeout without a
// sign of life, and long_rpc_timeout for the message), so only the state of the instances shows it.
// If Nova does not answer, the conductor counts as waiting.
func (s *Service) givenUp(ctx context.Context, r *oslo.Request, q *question, now span.Instant) bool {
	if s.Waits == nil || !old(r, now) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, waitsTimeout)
	defer cancel()
	for _, instance := range q.request.Instances {
		waits, err := s.Waits(ctx, instance)
		if err != nil {
			s.Log.WarnContext(ctx, "could not determine whether Nova still waits for an old request; answering it", "request_id", q.request.ID, "error", err)
			return false
		}
		if waits {
			return false
		}
	}
	return len(q.request.Instances) > 0
}

// old reports whether a conductor may have given up a request. A user's request is at most as
// old as its context; half of the patience allows for clocks that differ.
func old(r *oslo.Request, now span.Instant) bool {
	begun := r.Context.Timestamp()
	return !begun.IsZero() && now.Time().Sub(begun) > r.Patience()/2
}

// refuse answers a request with a refusal, and stores that as a decision.
func (s *Service) refuse(q *question, at span.Instant, refusal string, considered int) (any, error) {
	s.keepRefusal(q, at, refusal, considered)
	return nil, noValidHost(sentence(refusal))
}

// keepRefusal stores the decision that a request got no host, with the reason and the number of hosts
// considered.
func (s *Service) keepRefusal(q *question, at span.Instant, refusal string, considered int) {
	s.Decisions.Keep(placing.Decision{
		RequestID: q.request.ID, ProjectID: q.request.ProjectID, Instances: q.request.Instances,
		HandledBy: s.handledBy(q), At: at, Reason: refusal, Considered: considered,
	})
}
