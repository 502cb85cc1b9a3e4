// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerGroupAffinity keeps the members of a server group with the policy affinity on the hosts
// that already have members (nova/scheduler/filters/affinity_filter.py).
type ServerGroupAffinity struct{}

func (ServerGroupAffinity) Name() string { return "ServerGroupAffinityFilter" }

func (ServerGroupAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) || r.Group == nil || r.Group.Policy != "affinity" || len(r.Group.Hosts) == 0 {
		return nil
	}
	hosts := hostset.New(s.Len())
	for _, name := range r.Group.Hosts {
		if i, known := s.Index(name); known {
			hosts.Add(i)
		}
	}
	return subset{hosts, func(int) string { return "the members of the server group are on other hosts" }}
}

// ServerGroupAntiAffinity keeps the members of a server group with the policy anti-affinity
// apart: a host has at most max_server_per_host of them, 1 by default. The instance's present
// host passes. (nova/scheduler/filters/affinity_filter.py)
type ServerGroupAntiAffinity struct{}

func (ServerGroupAntiAffinity) Name() string { return "ServerGroupAntiAffinityFilter" }

// For implements Filter. Hosts with as many members of the group as are allowed are left out, except the
// instance's own.
func (ServerGroupAntiAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) || r.Group == nil || r.Group.Policy != "anti-affinity" {
		return nil
	}
	most, on := max(r.Group.MaxPerHost, 1), map[int]int{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(r.Group.Members))) {
		for _, i := range s.HostsOf(id) {
			on[i]++
		}
	}
	open := s.All().Clone()
	for i, members := range on {
		if members >= most {
			open.Remove(i)
		}
	}
	if len(r.Instances) > 0 {
		open.Unite(hostsOf(s, r.Instances[:1]))
	}
	return subset{open, func(int) string {
		if most == 1 {
			return "a member of the server group is on the host"
		}
		return fmt.Sprintf("%d members of the server group are on the host, which is the limit", most)
	}}
}
