// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// keepHosts answers a rebuild: the instances stay on their hosts, and nothing is claimed.
func (t *task) keepHosts() (Placed, error) {
	states := t.dispatcher.Board.Load()
	if states == nil {
		return Placed{}, inventory.ErrNotRead
	}
	defer t.explain()
	plan, err := t.plan(states)
	if err != nil {
		return Placed{}, err
	}
	var p Placed
	for _, pick := range plan.Picks {
		p.Selections = append(p.Selections, []Selection{{Host: states.Host(pick.Take.Host)}})
	}
	return p, nil
}

// plan makes a plan.
func (t *task) plan(states *inventory.States) (scheduler.Plan, error) {
	t.planned.Drop()
	t.planned = t.dispatcher.Planner.Draft(states, &t.request, span.At(t.dispatcher.Now()), t.dispatcher.Draw)
	if len(t.planned.Picks) == 0 {
		return scheduler.Plan{}, fault.New(fault.Conflict, "%s", cmp.Or(t.planned.Decision.Reason, "there is no host for it"))
	}
	return t.planned.Plan, nil
}

// explain records the last plan. No plan waits for the explanation, and those that were not entered get none.
func (t *task) explain() {
	if t.planned != nil {
		t.decision, t.planned = t.planned.Explained().Decision, nil
	}
}

// choose makes a plan and reserves its room in the live state, from which later requests then plan.
// It may make several plans, each from newer states; each reads the promises after the states.
func (t *task) choose(ctx context.Context) (c choice, err error) {
	ctx, end := tracing.Step(ctx, "choose hosts")
	defer func() { end(err) }()
	defer t.explain()
	plan := func(states *inventory.States) (takes []inventory.Take, err error) {
		t.discard(c)
		c, takes, err = t.draft(states)
		return takes, err
	}
	repair := func(states *inventory.States) (takes []inventory.Take, possible bool) {
		if !t.planned.Repair(t.evictable(states), span.At(t.dispatcher.Now())) {
			return nil, false
		}
		t.discard(c)
		c, takes = t.using(states, t.planned.Picks)
		return takes, true
	}
	hold, err := t.dispatcher.Board.Place(ctx, t.request.ProjectID, plan, repair)
	if err != nil {
		t.discard(c)
		return choice{}, err
	}
	c.hold = hold
	for _, pick := range c.picks {
		c.Selections = append(c.Selections, selected(c.states, pick))
	}
	for i, selections := range c.Selections {
		if len(selections[0].Allocations) > 0 { // Placement keeps no consumer without allocations
			c.claims = append(c.claims, placing.Claim{
				Consumer: t.request.Instances[i], ProjectID: t.request.ProjectID, UserID: t.request.UserID,
				Allocations: selections[0].Allocations,
			})
		}
	}
	return c, nil
}

// draft makes a plan, and returns the amounts that it uses on the hosts.
func (t *task) draft(states *inventory.States) (c choice, takes []inventory.Take, err error) {
	if t.ended == nil {
		t.ended = t.dispatcher.pending.next()
	}
	plan, err := t.plan(t.evictable(states))
	if err != nil {
		return c, nil, err
	}
	c, takes = t.using(states, plan.Picks)
	return c, takes, nil
}

// evictable returns the states in which only those instances can be evicted that the request may evict.
func (t *task) evictable(states *inventory.States) *inventory.States {
	spared := t.dispatcher.Evictor.Unevictable()
	maps.Copy(spared, t.excluded)
	return states.WithProtected(spared)
}

// using returns the choice of a plan, and the amounts that it uses on the hosts. From then on its evictions
// are pending: a request that finds no room because of the plan waits for them.
func (t *task) using(states *inventory.States, picks []scheduler.Pick) (c choice, takes []inventory.Take) {
	c.states, c.picks = states, picks
	var hosts []int // of the victims
	for _, pick := range picks {
		takes = append(takes, pick.Take)
		for n, instance := range pick.Victims.Instances {
			c.victims = append(c.victims, eviction.Victim{Instance: *instance, On: states.Host(pick.Take.Host), Cost: pick.Victims.Costs[n]})
			hosts = append(hosts, pick.Take.Host)
		}
	}
	if len(c.victims) == 0 {
		return c, takes
	}
	t.dispatcher.pending.begin()
	wanted := placing.Allocations{}
	for _, pick := range picks {
		wanted.Add(claiming.AllocationsOn(states.Host(pick.Take.Host), pick.Take.Resources))
	}
	return c, append(takes, t.residuals(c.victims, hosts, wanted)...)
}

// residuals returns the amounts on these hosts that the victims keep until they are gone.
func (t *task) residuals(victims []eviction.Victim, hosts []int, wanted placing.Allocations) (takes []inventory.Take) {
	for n, v := range victims {
		has := claiming.AllocationsOn(v.On, v.Instance.Holds)
		if stays := eviction.Residual(v.On, has, wanted, t.refusals[v.On.Name] > 0); len(stays) > 0 {
			takes = append(takes, inventory.Take{Host: hosts[n], Instance: v.Instance.ID, Resources: claiming.ResourcesOn(v.On, stays)})
		}
	}
	return takes
}

// discard drops a plan whose room was not reserved.
func (t *task) discard(c choice) {
	if len(c.victims) > 0 {
		t.dispatcher.pending.end()
	}
}

// hosts returns the names of the hosts to which a refusal by Placement applies; all chosen hosts if
// it names no provider.
func (c choice) hosts(refusal error) []string {
	full, named := errors.AsType[*placing.ErrNoCapacity](refusal)
	named = named && full.Provider != ""
	var names []string
	for _, s := range c.Selections {
		if named && s[0].Allocations[full.Provider] == nil {
			continue
		}
		if name := s[0].Host.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
