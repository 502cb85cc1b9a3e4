// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// tenantKey is the metadata key of an aggregate that lists its projects.
const tenantKey = "filter_tenant_id"

// TenantAggregates keeps the requests of a project to the aggregates that list it under a
// metadata key with the prefix filter_tenant_id (nova/scheduler/request_filter.py
// require_tenant_aggregate, with [scheduler] limit_tenants_to_placement_aggregate).
type TenantAggregates struct {
	// Required refuses projects that no aggregate lists
	// (placement_aggregate_required_for_tenants).
	Required bool
}

func (TenantAggregates) Name() string { return "TenantAggregateFilter" }

// For implements Filter. A project with aggregates of its own gets their hosts only.
func (f TenantAggregates) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if r.Rebuild {
		return nil
	}
	var own []string
	for _, a := range s.Aggregates() {
		for key, value := range a.Metadata {
			if value == r.ProjectID && strings.HasPrefix(key, tenantKey) {
				own = append(own, a.UUID)
				break
			}
		}
	}
	switch {
	case own != nil:
		return subset{membersOf(s, own), func(int) string { return "the host is in no aggregate of the project" }}
	case f.Required:
		return refuseAll("no aggregate is for the project")
	default:
		return nil
	}
}
