// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/reservation"
)

// NewPlan decides on a request. The error is an Invalid fault for an invalid request, and a
// *reservation.Refusal for one that cannot be accepted.
func NewPlan(v View, req reservation.Request) (Plan, error) {
	s, err := searchFor(v, req)
	if err != nil {
		return Plan{}, err
	}
	if refusal := s.refusing().limited(); refusal != nil {
		return Plan{}, refusal
	}
	s.pricing().decide()
	plan, ok, err := found(s)
	if !ok {
		if refusal := s.refusing().refuseLimits(); refusal != nil {
			return Plan{}, refusal
		}
		refusal := s.refusing().refuse()
		s.nameSleepers(refusal)
		return Plan{}, refusal
	}
	return plan, err
}

// fits returns the plan of a request that NewPlan accepts. A refusal, which takes longer, is not made.
func (v View) fits(req reservation.Request) (Plan, bool) {
	s, err := searchFor(v, req)
	if err != nil || s.refusing().limited() != nil {
		return Plan{}, false
	}
	s.pricing().decide()
	plan, ok, err := found(s)
	return plan, ok && err == nil
}

// searchFor returns the search for a request, and for its image.
func searchFor(v View, req reservation.Request) (*search, error) {
	a, err := parseRequest(req, v)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(v.forTerms(a.Terms), a)
	if err != nil {
		return nil, err
	}
	return s, s.imaging().stage()
}

// found returns the plan that a search finds; false if there is no room.
func found(s *search) (plan Plan, ok bool, err error) {
	start, delayed, ok := s.start()
	if !ok {
		return Plan{}, false, nil
	}
	plan = s.planOn(start, s.claims(start))
	plan.DelayedByBoot = delayed
	plan, err = s.imaging().withImage(plan)
	return plan, true, err
}
