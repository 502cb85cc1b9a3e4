package topic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// selectDestinations answers on which hosts instances shall run.
func (s *Service) selectDestinations(ctx context.Context, r *oslo.Request) (any, error) {
	begun := s.Now()
	q, err := s.read(ctx, r)
	if err != nil {
		s.Log.WarnContext(ctx, "a request for hosts cannot be read", "error", err)
		return nil, noValidHost("The request cannot be read: " + fault.Of(err).Message)
	}
	states := s.States()
	if states == nil {
		return nil, noValidHost("Almanac has not read the hosts of the cloud yet; try again later.")
	}
	if refusal := s.resolve(q, begun); refusal != "" {
		s.Decisions.Keep(placing.Decision{
			RequestID: q.request.ID, ProjectID: q.request.ProjectID, Instances: q.request.Instances,
			Way: s.way(q), At: begun, Reason: refusal, Considered: states.Len(),
		})
		return nil, noValidHost(sentence(refusal))
	}
	if s.Placer == nil || s.beyond(q, states) {
		return s.passOn(ctx, q, states, begun)
	}
	return s.place(ctx, q)
}

// resolve finds the reservation that the request names, and adds what its hosts ask for.
// It gives why the request may not use it; empty where it may, or names none.
func (s *Service) resolve(q *question, now span.Instant) (refusal string) {
	held, refusal := s.Promises.Resolve(&q.request, now)
	if refusal != "" || held == nil || q.request.Rebuild {
		return refusal
	}
	q.held = held
	for spec, value := range fence.Requires(held) {
		q.demand(spec, value)
	}
	return ""
}

// beyond says whether the request has to be passed on, since something of it cannot be
// judged here.
func (s *Service) beyond(q *question, states *inventory.States) bool {
	if what := filters.Beyond(s.Filters, states, &q.request); what != "" {
		q.beyond = append(q.beyond, what)
	}
	return len(q.beyond) > 0
}

func (s *Service) way(q *question) string {
	switch {
	case s.Placer == nil:
		return placing.Interposed
	case len(q.beyond) > 0:
		return placing.PassedOn
	default:
		return placing.Replaced
	}
}

// place decides here.
func (s *Service) place(ctx context.Context, q *question) (any, error) {
	placed, err := s.Placer.Place(ctx, &q.request)
	if err != nil {
		f := fault.Of(err)
		if f.Kind != fault.Conflict {
			s.Log.ErrorContext(ctx, "a request for hosts has failed", "request_id", q.request.ID, "error", err)
		}
		return nil, noValidHost(sentence(f.Message))
	}
	answer := make([][]object.Selection, len(placed.Selections))
	for i, hosts := range placed.Selections {
		for _, host := range hosts {
			one, err := selection(host)
			if err != nil {
				s.Placer.Return(placed)
				return nil, err
			}
			answer[i] = append(answer[i], one)
		}
	}
	return object.Answer(answer, q.objects), nil
}

// isNoValidHost says whether it is Nova's exception for a request without a place.
func isNoValidHost(err error) bool {
	remote, ok := errors.AsType[*oslo.RemoteError](err)
	return ok && remote.Class == "NoValidHost"
}

// sentence gives text with a capital and a full stop, as Nova's sentence before it has.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// beyondSentence tells the tenant what there is nobody to judge.
func beyondSentence(beyond object.Beyond) string {
	return fmt.Sprintf("%s; this cannot be judged without a nova-scheduler to pass it on to.", strings.TrimSuffix(sentence(strings.Join(beyond, "; ")), "."))
}
