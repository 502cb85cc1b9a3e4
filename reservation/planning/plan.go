// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/reservation"
)

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
	if err := s.imaging().stage(); err != nil {
		return Plan{}, err
	}
	if refusal := s.refusing().limited(); refusal != nil {
		return Plan{}, refusal
	}
	s.pricing().decide()
	start, delayed, ok := s.start()
	if !ok {
		if refusal := s.refusing().refuseLimits(); refusal != nil {
			return Plan{}, refusal
		}
		refusal := s.refusing().refuse()
		s.nameSleepers(refusal)
		return Plan{}, refusal
	}
	plan := s.planOn(start, s.claims(start))
	plan.DelayedByBoot = delayed
	return s.imaging().withImage(plan)
}
