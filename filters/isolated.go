// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// IsolatedHosts keeps the isolated images to the isolated hosts and, unless Open is set, other
// images off these hosts (nova/scheduler/filters/isolated_hosts_filter.py). Host names are
// case-sensitive.
type IsolatedHosts struct {
	oncePerRequest
	Images, Hosts []string // isolated_images, isolated_hosts
	Open          bool     // restrict_isolated_hosts_to_isolated_images is false

	isolated cached[hostset.Set]
}

func (*IsolatedHosts) Name() string { return "IsolatedHostsFilter" }

// For implements Filter. Isolated images go to isolated hosts only; others too, unless Open is set.
func (f *IsolatedHosts) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	inside := r.ImageID != "" && slices.Contains(f.Images, r.ImageID)
	if forced(r) || !inside && f.Open {
		return nil
	}
	isolated := f.isolated.get(s, f.gather)
	if inside {
		return subset{isolated, func(int) string { return "the image is for isolated hosts, and the host is not isolated" }}
	}
	others := s.All().Clone()
	others.Subtract(isolated)
	return subset{others, func(int) string { return "the host is isolated, and the image is not for isolated hosts" }}
}

func (f *IsolatedHosts) gather(s *inventory.States) hostset.Set {
	hosts := hostset.New(s.Len())
	for _, name := range f.Hosts {
		if i, known := s.Index(name); known && s.Host(i).Name == name {
			hosts.Add(i)
		}
	}
	return hosts
}
