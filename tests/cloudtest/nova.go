// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Server is a server of the model of Nova.
type Server struct {
	inventory.Instance
	Warned    []eviction.Warning // the notices to its owner
	Withdrawn int                // how many notices were withdrawn
	Told      int                // how often Nova was ordered to evict it
	Wronged   bool               // Nova was ordered to evict it when it was locked, protected or busy
	Refuses   bool               // Nova refuses to evict it
	Takes     time.Duration      // the time until it is gone
	left      time.Duration      // of that time has passed
}

var refused = fault.New(fault.Conflict, "Nova refuses it")

// Preemptible puts a preemptible instance with that many VCPUs on host i.
func (c *Model) Preemptible(id string, i int, vcpus int64) *Server {
	s := &Server{Instance: inventory.Instance{
		ID: id, ProjectID: "theirs", UserID: "they", Host: Host(i), Status: "ACTIVE", Preemptible: true,
	}, Takes: time.Second}
	c.Servers[id] = s
	if err := c.Grant([]placing.Claim{{
		Consumer: id, ProjectID: "theirs", UserID: "they", Allocations: placing.Allocations{Provider(i): {"VCPU": vcpus}},
	}}); err != nil {
		panic(err)
	}
	c.Passes = c.Pass
	return s
}

// Pass lets time pass; servers that were ordered to leave do so when their time has passed.
func (c *Model) Pass(d time.Duration) {
	c.At = c.At.Add(d)
	for id, s := range c.Servers {
		if s.Told == 0 {
			continue
		}
		if s.left += d; s.left >= s.Takes {
			c.Vanish(id)
		}
	}
}

// Vanish deletes a server as Nova does, with all its allocations in Placement
// (nova/compute/manager.py _complete_deletion).
func (c *Model) Vanish(id string) {
	delete(c.Servers, id)
	delete(c.Consumers, id)
}

// Server implements eviction.Servers.
func (c *Model) Server(_ context.Context, id string) (inventory.Instance, error) {
	if c.Call("server") != Fine {
		return inventory.Instance{}, Away
	}
	s, there := c.Servers[id]
	if !there {
		return inventory.Instance{}, fault.New(fault.NotFound, "there is no server %s", id)
	}
	return s.Instance, nil
}

// Warn implements eviction.Servers.
func (c *Model) Warn(_ context.Context, w eviction.Warning) error {
	if c.Call("warn") != Fine {
		return Away
	}
	switch s := c.Servers[w.Instance.ID]; {
	case s == nil:
	case w.At.IsZero():
		s.Withdrawn++
	default:
		s.Warned = append(s.Warned, w)
	}
	return nil
}

// Leave deletes an instance, as Nova does for an operator even where the instance is locked or
// busy (nova/compute/api.py check_instance_lock, force_delete).
func (c *Model) Leave(_ context.Context, i inventory.Instance) error {
	fate := c.Call("leave")
	if fate == Unsent || fate == Before || fate == Later {
		return Away
	}
	s := c.Servers[i.ID]
	if s == nil {
		return nil
	}
	if s.Refuses {
		return refused
	}
	s.Wronged = s.Wronged || s.Locked || s.Protected || s.Task != "" && s.Task != "deleting"
	s.Told++
	s.Task = "deleting"
	if fate == After {
		return Away
	}
	return nil
}

// instancesOn returns the instances on host i, with what they hold there.
func (c *Model) instancesOn(i int) (all []inventory.Instance) {
	for _, s := range c.Servers {
		if s.Host == Host(i) {
			one := s.Instance
			one.Holds = c.Holds(i)[one.ID]
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Holds returns what each consumer has of host i.
func (c *Model) Holds(i int) map[string]map[string]int64 { return c.Placement.On(Provider(i)) }
