// SPDX-License-Identifier: Apache-2.0

// Package cloudtest has a Dispatcher and an Evictor on a model of Placement and Nova. A test
// decides the Fate of each call, and the clock stands still unless a test sets it.
package cloudtest

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// FirstFit chooses the first host with room, and two others as alternates. Where no host has
// room it chooses the first on which preemptible instances, the first by their ids, make room.
type FirstFit struct{}

func (FirstFit) Draft(s *inventory.States, r *placing.Request, _ span.Instant, _ func(int) int) *scheduler.Draft {
	plan := &scheduler.Draft{}
	plan.Decision = placing.Decision{RequestID: r.ID, Instances: r.Instances, Considered: s.Len()}
	for _, instance := range r.Instances {
		fitting := slices.DeleteFunc(slices.Collect(s.All().All()), func(i int) bool { return !fits(s, i, r) })
		if pick, ok := evicting(s, instance, r); ok && len(fitting) == 0 {
			plan.Picks = append(plan.Picks, pick)
			plan.Decision.Placements = append(plan.Decision.Placements, placing.Placement{Instance: instance, Host: s.Host(pick.Take.Host).Name})
			s = s.WithTaken([]inventory.Take{pick.Take})
			continue
		}
		if len(fitting) == 0 {
			plan.Picks, plan.Decision = nil, placing.Decision{RequestID: r.ID, Reason: "There is no room for all of them."}
			return plan
		}
		pick := scheduler.Pick{Take: inventory.Take{Host: fitting[0], Instance: instance, Resources: r.Resources}}
		pick.Alternates = fitting[1:min(3, len(fitting))]
		plan.Picks = append(plan.Picks, pick)
		plan.Decision.Placements = append(plan.Decision.Placements, placing.Placement{Instance: instance, Host: s.Host(fitting[0]).Name})
		s = s.WithTaken([]inventory.Take{pick.Take})
	}
	return plan
}

// evicting returns the first host with the first victims that are enough.
func evicting(s *inventory.States, instance string, r *placing.Request) (pick scheduler.Pick, ok bool) {
	for i := range s.All().All() {
		with, pick := s, scheduler.Pick{Take: inventory.Take{Host: i, Instance: instance, Resources: r.Resources}}
		for _, one := range s.InstancesOn(i) {
			if !one.Evictable() {
				continue
			}
			pick.Take.Victims, pick.Victims.Instances = append(pick.Take.Victims, one.ID), append(pick.Victims.Instances, &one)
			pick.Victims.Costs = append(pick.Victims.Costs, 1)
			with = with.WithTaken([]inventory.Take{{Host: i, Victims: []string{one.ID}}})
			if fits(with, i, r) {
				return pick, !r.Preemptible
			}
		}
	}
	return pick, false
}

func fits(s *inventory.States, i int, r *placing.Request) bool {
	for class, amount := range r.Resources {
		if c := s.Column(class); c.Used[i]+amount > c.Limit[i] {
			return false
		}
	}
	return !slices.Contains(r.IgnoreHosts, s.Host(i).Name)
}
