// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// selectDestinations returns the hosts for instances.
func (s *Service) selectDestinations(ctx context.Context, r *oslo.Request) (any, error) {
	elapsed := s.Elapsed()
	answer, err := s.decide(ctx, r)
	if s.Answered != nil {
		s.Answered(s.Elapsed()-elapsed, err == nil)
	}
	return answer, err
}

// decide answers a request for hosts: by a refusal, by Almanac's own choice, or by that of the
// nova-scheduler behind.
func (s *Service) decide(ctx context.Context, r *oslo.Request) (any, error) {
	begun := s.Now()
	q, err := s.read(ctx, r)
	if err != nil {
		s.Log.WarnContext(ctx, "could not read a request for hosts", "error", err)
		return nil, noValidHost(unreadable(fault.Of(err)))
	}
	s.catchUp(ctx)
	states := s.States()
	if states == nil {
		return nil, noValidHost("Almanac has not read the hosts of the cloud yet; try again later.")
	}
	if s.givenUp(ctx, r, q, begun) {
		s.Log.WarnContext(ctx, "dropped a request that Nova has given up", "request_id", q.request.ID, "instances", q.request.Instances)
		return s.refuse(q, begun, abandoned, 0)
	}
	if refusal := s.admit(ctx, q, begun); refusal != "" {
		return s.refuse(q, begun, refusal, states.Len())
	}
	if s.Placer == nil || s.beyond(q, states) {
		return s.passOn(ctx, q, states, begun)
	}
	return s.place(ctx, r, q)
}

// admit finds the reservation that the request names, adds what its hosts require, and stores that
// the instances belong to it. refusal is the reason if the request is not admitted; "" if it is.
func (s *Service) admit(ctx context.Context, q *question, now span.Instant) (refusal string) {
	if q.request.Rebuild {
		return "" // it keeps its host
	}
	by := admission.Admission{Promises: s.Promises, Records: s.Records, Rule: s.Rule, Pins: s.Pins, Log: s.Log}
	entry, refusal := by.Resolve(ctx, &q.request, now)
	if refusal != "" {
		return refusal
	}
	q.pinned = entry.Host
	if q.held = entry.Held; q.held != nil {
		// The claims of the reservation name its hosts; the states show their traits and
		// aggregates only after the next reading.
		q.request.Required = slices.DeleteFunc(q.request.Required, func(trait string) bool { return strings.HasPrefix(trait, fence.OwnPrefix) })
		delete(q.request.ExtraSpecs, fence.PoolSpec)
		if q.held.Kind == reservation.Instances {
			q.request.Resources[fence.OwnName(q.held.ID)] = 1
		}
	}
	return by.Remember(ctx, &q.request, entry, now)
}

// beyond reports whether to pass the request on because Almanac cannot judge all of it.
func (s *Service) beyond(q *question, states *inventory.States) bool {
	if s.Behind == nil { // the filters refuse what they cannot judge, host by host
		return len(q.beyond) > 0
	}
	if what := filters.Unsupported(s.Filters, states, &q.request); what != "" {
		q.beyond = append(q.beyond, what)
	}
	if what := weighers.Unsupported(s.Weighers, states, &q.request); what != "" {
		q.beyond = append(q.beyond, what)
	}
	return len(q.beyond) > 0
}

// handledBy returns who decides the request, as a decision stores it.
func (s *Service) handledBy(q *question) string {
	switch {
	case s.Placer == nil:
		return placing.Interposed
	case len(q.beyond) > 0:
		return placing.PassedOn
	default:
		return placing.Replaced
	}
}

// place decides the request. If the answer does not reach the caller, it releases the claims.
func (s *Service) place(ctx context.Context, r *oslo.Request, q *question) (any, error) {
	placed, err := s.Placer.Place(ctx, &q.request)
	if err != nil {
		f := fault.Of(err)
		if f.Kind == fault.Conflict {
			return nil, noValidHost(sentence(f.Message) + q.among())
		}
		s.Log.ErrorContext(ctx, "a request for hosts has failed", "request_id", q.request.ID, "error", err)
		if f.Kind == fault.Unavailable {
			return nil, noValidHost(sentence(f.Message))
		}
		return nil, noValidHost(sentence(failed)) // the words of a service are not for the tenant
	}
	r.Undo(func() { s.Placer.Return(placed) })
	answer := make([][]object.Selection, len(placed.Selections))
	for i, hosts := range placed.Selections {
		for _, host := range hosts {
			one, err := selection(host)
			if err != nil {
				return nil, err
			}
			answer[i] = append(answer[i], one)
		}
	}
	return object.Answer(answer, q.objects), nil
}

// unreadable returns the tenant's message for a request that cannot be read.
func unreadable(f *fault.Error) string {
	what := f.Message
	if f.Field != "" {
		what = f.Field + " " + what
	}
	return "The request cannot be read: " + strings.TrimSuffix(what, ".") + "."
}

// among returns the tenant's message that only the hosts of a reservation were considered; empty if
// all were.
func (q *question) among() string {
	if q.held == nil {
		return ""
	}
	return fmt.Sprintf(" Only the hosts of reservation %s were asked.", q.held.ID)
}

// isNoValidHost reports whether err is Nova's exception for a request without a host.
func isNoValidHost(err error) bool {
	remote, ok := errors.AsType[*oslo.RemoteError](err)
	return ok && remote.Class == "NoValidHost"
}

// sentence returns text with a capital and a full stop, like Nova's sentence before it.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// beyondSentence returns the tenant's message for what neither scheduler can judge.
func beyondSentence(beyond object.Unsupported) string {
	return fmt.Sprintf("%s; this cannot be judged without a nova-scheduler to pass it on to.", strings.TrimSuffix(sentence(strings.Join(beyond, "; ")), "."))
}
