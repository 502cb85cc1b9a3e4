// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Place decides a request that a caller in this process makes, as if Nova had sent it. It fails with
// a Conflict fault, whose message states for the tenant why there is no host, or with the error of
// the Placer.
func (s *Service) Place(ctx context.Context, r placing.Request) (dispatch.Placed, error) {
	elapsed := s.Elapsed()
	placed, err := s.placeDirectly(ctx, &question{request: r})
	if s.Answered != nil {
		s.Answered(s.Elapsed()-elapsed, err == nil)
	}
	return placed, err
}

// Return releases what Place has claimed.
func (s *Service) Return(p dispatch.Placed) { s.Placer.Return(p) }

// placeDirectly places a request that did not come from Nova's topic, by the same rules.
func (s *Service) placeDirectly(ctx context.Context, q *question) (dispatch.Placed, error) {
	begun := s.Now()
	s.catchUp(ctx)
	states := s.States()
	if states == nil {
		return dispatch.Placed{}, fault.New(fault.Unavailable, "Almanac has not read the hosts of the cloud yet; try again later")
	}
	if refusal := s.admit(ctx, q, begun); refusal != "" {
		s.keepRefusal(q, begun, refusal, states.Len())
		return dispatch.Placed{}, fault.New(fault.Conflict, "%s", sentence(refusal))
	}
	placed, err := s.Placer.Place(ctx, &q.request)
	if f := fault.Of(err); err != nil && f.Kind == fault.Conflict {
		return placed, &fault.Error{Kind: fault.Conflict, Message: sentence(f.Message) + q.among(), Err: err}
	}
	return placed, err
}
