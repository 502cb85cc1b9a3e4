package booking

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// View is all that a decision depends on. Its calendar does not change while a
// decision is made.
type View struct {
	Now      span.Instant
	Calendar *calendar.Calendar
	// Held is what the project holds, without the reservation that is changed.
	Held     Held
	Limits   Limits
	Defaults Defaults
	// LeadTime is how many seconds before a start its hosts should be empty.
	LeadTime int64
	// Migrates says that the guests of others are migrated off promised hosts; else they stay
	// until somebody takes them away.
	Migrates bool
	// SeesHidden says that the caller may use hidden properties.
	SeesHidden bool
	// Images is nil where images are not looked at.
	Images *Images

	roster *roster
	// What only a desk has; empty in a view without one.
	state      *state
	held       Held           // of the project, with the reservation that is changed
	configured int            // how often the rules were replaced
	facts      *staging.Facts // nil where images are not looked at
}

// Plan is what booking a request would do.
type Plan struct {
	Terms         reservation.Terms
	Span          span.Span
	Claims        []reservation.Claim
	DelayedByBoot bool
	// Matched counts the hosts in the pool that pass the filter.
	Matched int
	// Images is what the hosts have and will have of images, with the request's; nil where
	// it has none or they are not looked at.
	Images *staging.State
}

// NewPlan decides on a request. The error is an Invalid fault for a request that
// makes no sense, and a *reservation.Refusal for one that cannot be met.
func NewPlan(v View, req reservation.Request) (Plan, error) {
	a, err := settle(req, v)
	if err != nil {
		return Plan{}, err
	}
	s, err := newSearch(v, a)
	if err != nil {
		return Plan{}, err
	}
	if err := s.stage(); err != nil {
		return Plan{}, err
	}
	if refusal := s.limited(); refusal != nil {
		return Plan{}, refusal
	}
	start, delayed, ok := s.start()
	if !ok {
		if refusal := s.refuseHosts(); refusal != nil {
			return Plan{}, refusal
		}
		return Plan{}, s.refuse()
	}
	return s.withImage(s.planAt(start, delayed))
}

// planAt is the plan for a start at which the hosts are free.
func (s *search) planAt(start span.Instant, delayed bool) Plan {
	return Plan{
		Terms:         s.ask.Terms,
		Span:          span.New(start, s.ask.duration),
		Claims:        s.claims(start),
		DelayedByBoot: delayed,
		Matched:       s.matched,
	}
}
