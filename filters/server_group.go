package filters

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerGroupAffinity keeps the members of a server group with the policy affinity on
// the hosts on which some are already (nova/scheduler/filters/affinity_filter.py).
type ServerGroupAffinity struct{}

// Name is the filter's name.
func (ServerGroupAffinity) Name() string { return "ServerGroupAffinityFilter" }

// For prepares the filter.
func (ServerGroupAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) || r.Group == nil || r.Group.Policy != "affinity" || len(r.Group.Hosts) == 0 {
		return nil
	}
	hosts := hostset.New(s.Len())
	for _, name := range r.Group.Hosts {
		if i, known := s.Index(name); known {
			hosts.Add(i)
		}
	}
	return sieve{hosts, func(int) string { return "the members of the server group are on other hosts" }}
}

// ServerGroupAntiAffinity keeps the members of a server group with the policy
// anti-affinity apart: a host holds max_server_per_host of them at most, 1 unless the
// group says otherwise. The host on which the instance is already passes.
// (nova/scheduler/filters/affinity_filter.py)
type ServerGroupAntiAffinity struct{}

// Name is the filter's name.
func (ServerGroupAntiAffinity) Name() string { return "ServerGroupAntiAffinityFilter" }

// For prepares the filter.
func (ServerGroupAntiAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if unasked(r) || r.Group == nil || r.Group.Policy != "anti-affinity" {
		return nil
	}
	a := antiAffinity{s: s, most: max(r.Group.MaxPerHost, 1), members: make(map[string]bool, len(r.Group.Members))}
	for _, id := range r.Group.Members {
		a.members[id] = true
	}
	if len(r.Instances) > 0 {
		a.self = r.Instances[0]
	}
	return a
}

type antiAffinity struct {
	s       *inventory.States
	self    string
	members map[string]bool
	most    int
}

func (a antiAffinity) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		if a.full(i) {
			hosts.Remove(i)
		}
	}
}

func (a antiAffinity) full(i int) bool {
	on, here := 0, a.s.InstancesOn(i)
	for n := range here {
		if a.members[here[n].ID] {
			on++
		}
	}
	return on >= a.most && (a.self == "" || !slices.ContainsFunc(here, func(o inventory.Instance) bool { return o.ID == a.self }))
}

func (a antiAffinity) Why(int) string {
	if a.most == 1 {
		return "a member of the server group is on the host"
	}
	return fmt.Sprintf("%d members of the server group are on the host, as many as may be", a.most)
}
