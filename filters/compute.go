// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Compute refuses hosts whose nova-compute is disabled or has not reported lately
// (nova/scheduler/filters/compute_filter.py).
type Compute struct{ oncePerRequest }

func (Compute) Name() string { return "ComputeFilter" }

func (Compute) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) {
		return nil
	}
	return compute{s}
}

type compute struct{ s *inventory.States }

func (c compute) Keep(hosts hostset.Set) {
	hosts.Keep(c.s.Up())
	hosts.Keep(c.s.Enabled())
}

func (c compute) Why(i int) string {
	switch h := c.s.Host(i); {
	case h.Enabled:
		return "its nova-compute has not reported lately"
	case h.DisabledReason != "":
		return "its nova-compute is disabled: " + h.DisabledReason
	default:
		return "its nova-compute is disabled"
	}
}
