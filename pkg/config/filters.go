// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"

	"github.com/almanac-cloud/almanac/filters"
)

// FilterScheduler is section [filter_scheduler] as in Nova, without the weighers, and the options
// for filters of [scheduler] and [DEFAULT]. Of Options, what other options decide is empty.
type FilterScheduler struct {
	filters.Options
	EnabledFilters []string
	HostSubsetSize int
	ShuffleBest    bool
}

func filterSchedulerOptions(f *FilterScheduler) []option {
	return []option{
		list(&f.Available, "available_filters", []string{filters.AllFilters},
			"Filters that enabled_filters may name, as class paths; all_filters stands for all filters of Nova. Third-party "+
				"filters in Python do not run in Almanac."),
		list(&f.EnabledFilters, "enabled_filters", filters.Enabled,
			"Filters that a host must pass in mode replace, in this order, in addition to the filters that always run: those for "+
				"reservations and those that replace a query to Placement."),
		integer(&f.HostSubsetSize, "host_subset_size", 1, 1, 1_000_000, "Number of best hosts from which one is chosen at random."),
		boolean(&f.ShuffleBest, "shuffle_best_same_weighed_hosts", false, "Put hosts of equal weight in random order."),
		text(&f.ImagePropertiesDefaultArchitecture, "image_properties_default_architecture", "",
			"Architecture of images without the property, such as x86_64. Empty means any."),
		integer(&f.MaxIOOpsPerHost, "max_io_ops_per_host", 8, 0, math.MaxInt32,
			"For IoOpsFilter and AggregateIoOpsFilter: a host with this many I/O-intensive operations of instances, such as builds, resizes or snapshots, fails the filter."),
		integer(&f.MaxInstancesPerHost, "max_instances_per_host", 50, 1, math.MaxInt32,
			"For NumInstancesFilter and AggregateNumInstancesFilter: maximum number of instances per host."),
		list(&f.IsolatedImages, "isolated_images", nil, "For IsolatedHostsFilter: UUIDs of images that run on isolated hosts only."),
		hosts(&f.IsolatedHosts, "isolated_hosts", "For IsolatedHostsFilter: names of the isolated hosts."),
		boolean(&f.RestrictIsolatedHostsToIsolatedImages, "restrict_isolated_hosts_to_isolated_images", true, "Isolated hosts run isolated images only."),
		text(&f.AggregateImagePropertiesIsolationNamespace, "aggregate_image_properties_isolation_namespace", "",
			"For AggregateImagePropertiesIsolation: prefix of the aggregate metadata keys that the filter compares. "+
				"Empty means all keys."),
		text(&f.AggregateImagePropertiesIsolationSeparator, "aggregate_image_properties_isolation_separator", ".", "Separator between this prefix and the rest of the key."),
	}
}

// tenantOptions returns the options of [scheduler] for aggregates that are reserved for projects.
func tenantOptions(f *FilterScheduler) []option {
	return []option{
		boolean(&f.LimitTenantsToPlacementAggregate, "limit_tenants_to_placement_aggregate", false,
			"Restrict a project that is named in the filter_tenant_id metadata of aggregates to their hosts. As in Nova."),
		boolean(&f.PlacementAggregateRequiredForTenants, "placement_aggregate_required_for_tenants", false,
			"In addition, projects that no aggregate names may use no host. As in Nova."),
		boolean(&f.EnableIsolatedAggregateFiltering, "enable_isolated_aggregate_filtering", false,
			"Hosts of aggregates with trait:X=required in their metadata accept only instances that require trait X. As in Nova; "+
				"hosts of reservations are closed to other instances in any case."),
	}
}

func zoneOptions(f *FilterScheduler) []option {
	return []option{
		text(&f.DefaultAvailabilityZone, "default_availability_zone", "nova", "Availability zone of hosts without a zone. As in Nova."),
	}
}
