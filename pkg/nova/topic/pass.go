// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// passOn passes a request on to the other nova-scheduler, restricted to the hosts that it may use,
// and returns the answer unchanged. If a restriction finds no host, passOn tries the next one.
func (s *Service) passOn(ctx context.Context, q *question, states *inventory.States, begun span.Instant) (any, error) {
	d := placing.Decision{
		RequestID: q.request.ID, ProjectID: q.request.ProjectID, Instances: q.request.Instances,
		HandledBy: s.handledBy(q), At: begun, Considered: states.Len(),
	}
	if q.held != nil {
		d.Reservation = q.held.ID
	}
	elapsed := s.Elapsed()
	answer, err := s.ask(ctx, q, states, begun)
	if err != nil {
		d.Reason = why(err)
	} else {
		d.Placements = placements(q.request.Instances, answer)
	}
	d.Took = (s.Elapsed() - elapsed).Microseconds()
	s.Decisions.Keep(d)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// why returns the reason, for the tenant, why there is no host. The messages of Nova's other
// exceptions may contain details that are private to others.
func why(err error) string {
	if remote, ok := errors.AsType[*oslo.RemoteError](err); ok && isNoValidHost(err) {
		return remote.Message
	}
	return failed
}

// failed is the tenant's message for failures that only the operator can repair.
const failed = "the scheduler has failed; ask the operator"

// ask passes the request on to the nova-scheduler behind, narrowed to the hosts that the reservations
// leave, and returns its answer. All errors are of Nova's kind NoValidHost or an exception of Nova
// itself.
func (s *Service) ask(ctx context.Context, q *question, states *inventory.States, now span.Instant) (answer json.RawMessage, err error) {
	if s.Behind == nil {
		return nil, noValidHost(beyondSentence(q.beyond))
	}
	narrowed, refusal := narrow(s.Promises, q, states, now)
	if refusal != "" {
		return nil, noValidHost(sentence(refusal))
	}
	for _, n := range narrowed {
		if answer, err = s.call(ctx, q, n); !isNoValidHost(err) {
			break
		}
	}
	switch {
	case isNoValidHost(err) && q.held != nil:
		return nil, noValidHost(s.full(q, states, now))
	case err == nil, isNoValidHost(err):
		return answer, err
	case fault.Is(err, fault.Conflict):
		return nil, noValidHost(sentence(fault.Of(err).Message))
	case fault.Is(err, fault.Unavailable):
		s.Log.ErrorContext(ctx, "the nova-scheduler that requests are passed on to did not answer", "request_id", q.request.ID, "error", err)
		return nil, noValidHost("The scheduler does not answer; try again later.")
	}
	if _, is := errors.AsType[*oslo.RemoteError](err); is {
		return nil, err // an exception of Nova, which the conductor handles
	}
	s.Log.ErrorContext(ctx, "could not pass on a request for hosts", "request_id", q.request.ID, "error", err)
	return nil, noValidHost(sentence(failed))
}

// full returns the reason why no host of the request's reservation can hold it.
// nova-scheduler's own reason does not name the reservation.
func (s *Service) full(q *question, states *inventory.States, now span.Instant) string {
	if test := s.Promises.For(states, &q.request, now); test != nil && q.held.Kind == reservation.Instances {
		left := states.All().Clone()
		if test.Keep(left); left.Empty() && states.Len() > 0 {
			return sentence(test.Why(0)) // the same for all hosts: there is no room for all instances
		}
	}
	return fmt.Sprintf("None of the hosts of reservation %s has room for this; check what already runs on them.", q.held.ID)
}

// call sends the request, narrowed by n, to the nova-scheduler behind and returns its answer.
func (s *Service) call(ctx context.Context, q *question, n object.Narrowing) (answer json.RawMessage, err error) {
	args := maps.Clone(q.args)
	if args["spec_obj"], err = q.spec.Narrow(n); err != nil {
		return nil, err
	}
	target := oslo.Target{Exchange: Exchange, Topic: Topic, Version: q.version}
	err = s.Behind.Call(ctx, target, "select_destinations", args, &answer)
	return answer, err
}

// placements returns, from an answer of select_destinations, the host of each instance with its
// alternates. It returns nil if the answer cannot be read; the caller reports that error.
func placements(instances []string, answer json.RawMessage) (list []placing.Placement) {
	chosen, err := object.ReadAnswer(answer)
	if err != nil {
		return nil
	}
	for i, hosts := range chosen {
		if len(hosts) == 0 {
			continue
		}
		p := placing.Placement{Host: hosts[0].Host, Node: hosts[0].Node}
		if i < len(instances) {
			p.Instance = instances[i]
		}
		for _, other := range hosts[1:] {
			p.Alternates = append(p.Alternates, other.Host)
		}
		list = append(list, p)
	}
	return list
}
