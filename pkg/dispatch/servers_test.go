package dispatch_test

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

// server is one of the model of Nova.
type server struct {
	inventory.Instance
	warned  []eviction.Warning // of when it has to go
	staying int                // how often it was told that it has not to any more
	told    int                // how often it was told to leave
	wronged bool               // it was told to leave when it had not to
	refuses bool               // to leave
	takes   time.Duration      // to leave
	left    time.Duration      // of that; only counts once it is told
}

var refused = fault.New(fault.Conflict, "Nova refuses it")

// preemptible puts an instance of so many VCPU on host i.
func (c *cloud) preemptible(id string, i int, vcpus int64) *server {
	s := &server{Instance: inventory.Instance{
		ID: id, ProjectID: "theirs", UserID: "they", Host: host(i), Status: "ACTIVE", Preemptible: true,
	}, takes: time.Second}
	c.servers[id] = s
	if err := c.grant([]placing.Claim{{
		Consumer: id, ProjectID: "theirs", UserID: "they", Allocations: placing.Allocations{provider(i): {"VCPU": vcpus}},
	}}); err != nil {
		panic(err)
	}
	c.passes = c.pass
	return s
}

// pass lets the time pass that servers take to leave.
func (c *cloud) pass(d time.Duration) {
	c.now = c.now.Add(d)
	for id, s := range c.servers {
		if s.told == 0 {
			continue
		}
		if s.left += d; s.left >= s.takes {
			c.vanish(id)
		}
	}
}

// vanish is how Nova deletes a server: with what it has in Placement, whoever has
// written that (nova/compute/manager.py _complete_deletion).
func (c *cloud) vanish(id string) {
	delete(c.servers, id)
	delete(c.consumers, id)
}

func (c *cloud) Server(_ context.Context, id string) (inventory.Instance, error) {
	if c.called("server") != fine {
		return inventory.Instance{}, away
	}
	s, there := c.servers[id]
	if !there {
		return inventory.Instance{}, fault.New(fault.NotFound, "there is no server %s", id)
	}
	return s.Instance, nil
}

func (c *cloud) Warn(_ context.Context, w eviction.Warning) error {
	if c.called("warn") != fine {
		return away
	}
	switch s := c.servers[w.Instance.ID]; {
	case s == nil:
	case w.At.IsZero():
		s.staying++
	default:
		s.warned = append(s.warned, w)
	}
	return nil
}

// Leave deletes an instance, as Nova does for an operator, who is not refused one that is
// locked or busy (nova/compute/api.py check_instance_lock, force_delete).
func (c *cloud) Leave(_ context.Context, i inventory.Instance) error {
	fate := c.called("leave")
	if fate == unsent || fate == before || fate == later {
		return away
	}
	s := c.servers[i.ID]
	if s == nil {
		return nil
	}
	if s.refuses {
		return refused
	}
	s.wronged = s.wronged || s.Locked || s.Protected || s.Task != "" && s.Task != "deleting"
	s.told++
	s.Task = "deleting"
	if fate == after {
		return away
	}
	return nil
}

// instancesOn gives the instances on host i, with what they hold there.
func (c *cloud) instancesOn(i int) (all []inventory.Instance) {
	for _, s := range c.servers {
		if s.Host == host(i) {
			one := s.Instance
			one.Holds = c.holds(i)[one.ID]
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// holds gives what each consumer has of host i.
func (c *cloud) holds(i int) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for consumer, claim := range c.consumers {
		if amounts := claim.Allocations[provider(i)]; len(amounts) > 0 {
			all[consumer] = amounts
		}
	}
	return all
}
