// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ServerGroupSoftAffinityWeigher prefers, for a member of a server group with the policy
// soft-affinity, hosts with other members (nova/scheduler/weights/affinity.py).
type ServerGroupSoftAffinityWeigher struct{}

func (ServerGroupSoftAffinityWeigher) Name() string { return "ServerGroupSoftAffinityWeigher" }

// Indifferent reports whether the request has no group with that policy.
func (ServerGroupSoftAffinityWeigher) Indifferent(_ *inventory.States, r *placing.Request) bool {
	return !inGroup(r, "soft-affinity")
}

// Weigh sets the number of members on the host and on their way to it.
func (w ServerGroupSoftAffinityWeigher) Weigh(s *inventory.States, r *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	clear(raw)
	if !w.Indifferent(s, r) {
		countMembers(s, r.Group, hosts, raw, 1)
	}
}

// ServerGroupSoftAntiAffinityWeigher prefers, for a member of a server group with the policy
// soft-anti-affinity, hosts with few other members (nova/scheduler/weights/affinity.py).
type ServerGroupSoftAntiAffinityWeigher struct{}

func (ServerGroupSoftAntiAffinityWeigher) Name() string { return "ServerGroupSoftAntiAffinityWeigher" }

// Indifferent reports whether the request has no group with that policy.
func (ServerGroupSoftAntiAffinityWeigher) Indifferent(_ *inventory.States, r *placing.Request) bool {
	return !inGroup(r, "soft-anti-affinity")
}

// Weigh sets the negated number of members on the host and on their way to it.
func (w ServerGroupSoftAntiAffinityWeigher) Weigh(s *inventory.States, r *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	clear(raw)
	if !w.Indifferent(s, r) {
		countMembers(s, r.Group, hosts, raw, -1)
	}
}

func inGroup(r *placing.Request, policy string) bool {
	return r.Group != nil && r.Group.Policy == policy
}

// countMembers adds one for each member of the group on a host. It looks up the few members
// instead of searching the hosts.
func countMembers(s *inventory.States, g *placing.Group, hosts []int, raw []float64, one float64) {
	seen := make(map[string]bool, len(g.Members))
	for _, member := range g.Members {
		if seen[member] {
			continue
		}
		seen[member] = true
		for _, i := range s.HostsOf(member) {
			if k, weighed := slices.BinarySearch(hosts, i); weighed {
				raw[k] += one
			}
		}
	}
}
