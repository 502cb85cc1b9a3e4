// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// SameHost keeps a request to the hosts of the instances in its hint same_host
// (nova/scheduler/filters/affinity_filter.py).
type SameHost struct{ oncePerRequest }

func (SameHost) Name() string { return "SameHostFilter" }

func (SameHost) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	ids := r.Hints["same_host"]
	if skipsNovaFilters(r) || empty(ids) {
		return nil
	}
	return subset{hostsOf(s, ids), func(int) string { return "none of the instances that the hint same_host names is on the host" }}
}

// DifferentHost keeps a request off the hosts of the instances in its hint different_host
// (nova/scheduler/filters/affinity_filter.py).
type DifferentHost struct{ oncePerRequest }

func (DifferentHost) Name() string { return "DifferentHostFilter" }

func (DifferentHost) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	ids := r.Hints["different_host"]
	if skipsNovaFilters(r) || empty(ids) {
		return nil
	}
	others := s.All().Clone()
	others.Subtract(hostsOf(s, ids))
	return subset{others, func(int) string { return "an instance that the hint different_host names is on the host" }}
}

// empty reports whether a hint has no value. Nova's filters see the single value of a list
// without the list (nova/objects/request_spec.py get_scheduler_hint).
func empty(hint []string) bool { return len(hint) == 0 || len(hint) == 1 && hint[0] == "" }

func hostsOf(s *inventory.States, instances []string) hostset.Set {
	hosts := hostset.New(s.Len())
	for _, id := range instances {
		for _, i := range s.HostsOf(id) {
			hosts.Add(i)
		}
	}
	return hosts
}
