// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Plan is the result of a decision, which a booking of the request would store.
type Plan struct {
	Terms         reservation.Terms
	Span          span.Span
	Claims        []reservation.Claim
	Addresses     []address.Claim
	DelayedByBoot bool
	// Matched is the number of hosts of the pool that pass the filter.
	Matched int
	// Images returns the state of images on the hosts, with those of the request; nil if the
	// request has no image or decisions ignore images.
	Images func() staging.State
}

// NewPlan decides on a request. The error is an Invalid fault for an invalid request, and a
// *reservation.Refusal for one that cannot be accepted.
func NewPlan(v View, req reservation.Request) (Plan, error) {
	a, err := parseRequest(req, v)
	if err != nil {
		return Plan{}, err
	}
	s, err := newSearch(v.forTerms(a.Terms), a)
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
		if refusal := s.refuseLimits(); refusal != nil {
			return Plan{}, refusal
		}
		refusal := s.refuse()
		s.nameSleepers(refusal)
		return Plan{}, refusal
	}
	plan := s.planOn(start, s.claims(start))
	plan.DelayedByBoot = delayed
	return s.withImage(plan)
}

// planOn returns the plan for a start at which the hosts of claims are free.
func (s *search) planOn(start span.Instant, claims []reservation.Claim) Plan {
	return Plan{
		Terms:   s.request.Terms,
		Span:    span.New(start, s.request.duration),
		Claims:  claims,
		Matched: s.hostsAt(start).Count(),
	}
}
