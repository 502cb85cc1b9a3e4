// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// passing is a filter of Nova that refuses nothing in Almanac.
type passing struct{ name string }

func (p passing) Name() string { return p.name }

// For returns nil: every host passes.
func (passing) For(*inventory.States, *placing.Request, span.Instant) Test { return nil }

// These filters refuse nothing. AllHostsFilter refuses nothing in Nova either. The others check
// NUMA topologies, pinned CPUs and PCI devices; pkg/nova/object passes requests for these on.
var (
	allHosts       = passing{"AllHostsFilter"}
	numaTopology   = passing{"NUMATopologyFilter"}
	pciPassthrough = passing{"PciPassthroughFilter"}
)

// Metrics refuses hosts whose nova-compute does not measure some metrics
// (nova/scheduler/filters/metrics_filter.py). Nova's API does not return them, so the filter
// refuses all hosts if any metric is required.
type Metrics struct {
	// Setting contains the metrics as "name=ratio" ([metrics] weight_setting). As in Nova,
	// entries of another form are ignored.
	Setting []string
}

func (Metrics) Name() string { return "MetricsFilter" }

func (f Metrics) For(_ *inventory.States, r *placing.Request, _ span.Instant) Test {
	if skipsNovaFilters(r) || f.untold() == "" {
		return nil
	}
	return refuseAll(f.untold())
}

// Unsupported reports that the metrics are unknown.
func (f Metrics) Unsupported(_ *inventory.States, r *placing.Request) string {
	if skipsNovaFilters(r) {
		return ""
	}
	return f.untold()
}

// untold returns the name of a metric that hosts need; "" means that they need none.
func (f Metrics) untold() string {
	n := slices.IndexFunc(f.Setting, func(metric string) bool {
		name, ratio, _ := strings.Cut(metric, "=")
		_, err := float(ratio)
		return name != "" && err == nil
	})
	if n < 0 {
		return ""
	}
	name, _, _ := strings.Cut(f.Setting[n], "=")
	return fmt.Sprintf("Nova's API does not tell whether a host measures the metric %s", name)
}
