// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// decide updates the records from the observations, makes a plan, and adds what the plan intends to
// the records.
func (c *Controller) decide(s *step) besteffort.Plan {
	limits := c.Limits
	limits.Alone = s.view.Alone()
	for i := range s.requests {
		r := &s.requests[i]
		for j := range r.VMs {
			if v := &r.VMs[j]; !s.blind[r.ID] {
				v.Advance(r, s.seen[v.ID], s.now, limits)
			}
		}
		r.Together(s.now)
		for j := range r.VMs {
			before := s.stored[r.VMs[j].ID]
			c.hosts.Learn(&before, &r.VMs[j], s.now, c.Limits)
		}
	}
	situation := s.view.Situation(s.requests, s.now)
	plan := c.hosts.Plan(c.Planner, state.Ready(situation, s.requests), s.requests)
	untrusted := c.Untrusted() != ""
	for _, act := range plan.Acts {
		if v, r := state.Find(s.requests, act.Request, act.VM); v != nil && !s.blind[r.ID] {
			v.Enter(r, act, s.now, s.view.Deadline(situation.Holds, v.Node, act.Until, c.Limits.Order), untrusted)
		}
	}
	for i := range s.requests {
		r := &s.requests[i]
		for j := range r.VMs {
			if v := &r.VMs[j]; !s.blind[r.ID] && state.Claimed(situation.Holds, v.Node, s.now) {
				v.Yield(s.now, s.view.Deadline(situation.Holds, v.Node, s.now, c.Limits.Order))
			}
		}
		r.Together(s.now)
	}
	return plan
}
