// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Zone keeps a request to the aggregates of its availability zone. The default zone, which
// contains the hosts of no other, has no aggregate, so Nova does not enforce it: it is in the
// spec of instances that are forced to a host as zone:host, whatever that host's zone
// (nova/scheduler/request_filter.py map_az_to_placement_aggregate, nova/compute/api.py
// parse_availability_zone).
type Zone struct {
	Default string // default_availability_zone
}

func (Zone) Name() string { return "ZoneFilter" }

// For implements Filter. A zone that no aggregate has is refused, unless it is the default one.
func (f Zone) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild || r.Zone == "" {
		return nil
	}
	var of []string
	for _, a := range s.Aggregates() {
		if a.Zone == r.Zone {
			of = append(of, a.UUID)
		}
	}
	switch {
	case of != nil:
		return subset{membersOf(s, of), func(int) string { return "the host is not in the availability zone " + r.Zone }}
	case r.Zone == f.Default:
		return nil
	default:
		return refuseAll("there is no availability zone " + r.Zone)
	}
}

// AvailabilityZone keeps a request to the hosts of its availability zone, including the default
// zone (nova/scheduler/filters/availability_zone_filter.py).
type AvailabilityZone struct{ oncePerRequest }

func (AvailabilityZone) Name() string { return "AvailabilityZoneFilter" }

func (AvailabilityZone) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) || r.Zone == "" {
		return nil
	}
	return subset{s.Zone(r.Zone), func(i int) string {
		return fmt.Sprintf("the host is in the availability zone %s, not in %s", s.Host(i).Zone, r.Zone)
	}}
}
