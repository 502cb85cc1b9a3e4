package topic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// selectDestinations answers on which hosts instances shall run.
func (s *Service) selectDestinations(ctx context.Context, r *oslo.Request) (any, error) {
	begun := s.Now()
	q, err := s.read(ctx, r)
	if err != nil {
		s.Log.WarnContext(ctx, "a request for hosts cannot be read", "error", err)
		return nil, noValidHost(unreadable(fault.Of(err)))
	}
	s.catchUp(ctx)
	states := s.States()
	if states == nil {
		return nil, noValidHost("Almanac has not read the hosts of the cloud yet; try again later.")
	}
	refusal := s.resolve(ctx, q, begun)
	if refusal == "" {
		refusal = s.remember(ctx, q, begun)
	}
	if refusal != "" {
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
func (s *Service) resolve(ctx context.Context, q *question, now span.Instant) (refusal string) {
	if q.request.Rebuild {
		return "" // it keeps its host, and nothing is promised anew
	}
	held, refusal := s.Promises.Resolve(&q.request, now)
	if refusal != "" && s.outlived(ctx, q) {
		q.outlived = true
		delete(q.request.Hints, placing.ReservationHint)
		held, refusal = s.Promises.Resolve(&q.request, now)
	}
	if refusal != "" || held == nil {
		return refusal
	}
	q.held = held
	// Its claims say which hosts it has; their traits are seen only with the next reading.
	q.request.Required = slices.DeleteFunc(q.request.Required, func(trait string) bool { return strings.HasPrefix(trait, fence.OwnPrefix) })
	if held.Kind == reservation.Instances {
		q.request.Resources[fence.OwnName(held.ID)] = 1
	}
	return ""
}

// outlived says that the instances were placed by the request's hint before, and that its
// reservation is over.
func (s *Service) outlived(ctx context.Context, q *question) bool {
	hint := q.request.Hints[placing.ReservationHint]
	if len(hint) != 1 || s.Guests == nil {
		return false
	}
	if _, live := s.Promises.Promises.Reservation(hint[0]); live {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	known, err := s.Guests.Guests(ctx, q.request.Instances...)
	if err != nil {
		s.Log.ErrorContext(ctx, "what instances were for was not read", "request_id", q.request.ID, "error", err)
		return false
	}
	for _, id := range q.request.Instances {
		if _, placed := known[id]; !placed {
			return false
		}
	}
	return true
}

// memoryTimeout is how long the database may take to remember a request.
const memoryTimeout = time.Second

// remember stores of the instances what their hints say: in which reservation they are,
// and that they may make room. That comes before they have a host, so that whoever sees
// one on a host can know whose guest it is; those that find none are forgotten in time.
// It gives why the request cannot go on; empty where it can.
func (s *Service) remember(ctx context.Context, q *question, now span.Instant) (refusal string) {
	byHint := inventory.PreemptibleRule{Hint: s.Rule.Hint}
	g := inventory.Guest{Preemptible: byHint.Marks(&inventory.Instance{Hints: q.request.Hints})}
	if _, hinted := q.request.Hints[placing.ReservationHint]; hinted && q.held != nil {
		g.Reservation = q.held.ID
	}
	if g == (inventory.Guest{}) && !q.outlived || q.request.Rebuild || s.Guests == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	if err := s.Guests.SaveGuests(ctx, q.request.Instances, g, now); err != nil {
		s.Log.ErrorContext(ctx, "what instances are for was not stored, so they are not placed", "request_id", q.request.ID, "error", err)
		return "what the hints of the request are for cannot be stored now; try again later"
	}
	return ""
}

// beyond says whether the request has to be passed on, since something of it cannot be
// judged here.
func (s *Service) beyond(q *question, states *inventory.States) bool {
	if s.Behind == nil { // the filters refuse what they cannot judge, host by host
		return len(q.beyond) > 0
	}
	if g := q.request.Group; g != nil && strings.HasPrefix(g.Policy, "soft-") {
		q.beyond = append(q.beyond, "it belongs to a server group of policy "+g.Policy)
	}
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
		if f.Kind == fault.Conflict {
			return nil, noValidHost(sentence(f.Message) + q.among())
		}
		s.Log.ErrorContext(ctx, "a request for hosts has failed", "request_id", q.request.ID, "error", err)
		if f.Kind == fault.Unavailable {
			return nil, noValidHost(sentence(f.Message))
		}
		return nil, noValidHost(sentence(failed)) // what a service has said is not for the tenant
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

// unreadable tells the tenant what of a request cannot be read.
func unreadable(f *fault.Error) string {
	what := f.Message
	if f.Field != "" {
		what = f.Field + " " + what
	}
	return "The request cannot be read: " + strings.TrimSuffix(what, ".") + "."
}

// among tells the tenant among which hosts there is no place, where it is not all.
func (q *question) among() string {
	if q.held == nil {
		return ""
	}
	return fmt.Sprintf(" Only the hosts of reservation %s were asked.", q.held.ID)
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
