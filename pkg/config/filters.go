package config

import "math"

// FilterScheduler is section [filter_scheduler], as Nova has it, but for the weighers.
type FilterScheduler struct {
	EnabledFilters      []string
	AvailableFilters    []string
	HostSubsetSize      int
	ShuffleBest         bool
	DefaultArchitecture string // empty: none

	MaxIOOps, MaxInstances                   int // per host
	IsolatedImages, IsolatedHosts            []string
	RestrictIsolatedHosts                    bool
	ImagePropsNamespace, ImagePropsSeparator string // of aggregate_image_properties_isolation
}

func filterSchedulerOptions(f *FilterScheduler) []option {
	return []option{
		list(&f.AvailableFilters, "available_filters", []string{"nova.scheduler.filters.all_filters"},
			"Filters that enabled_filters may name, by the paths of their classes; all_filters are all of Nova's. Filters of "+
				"others, in Python, do not run in Almanac."),
		list(&f.EnabledFilters, "enabled_filters", []string{
			"ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
		}, "Filters that a host has to pass in mode replace, in their order, beside those that always count: the reservations, "+
			"and what Placement would say."),
		integer(&f.HostSubsetSize, "host_subset_size", 1, 1, 1_000_000, "Among how many of the best hosts one is drawn."),
		boolean(&f.ShuffleBest, "shuffle_best_same_weighed_hosts", false, "Hosts that are equally good come in a random order."),
		text(&f.DefaultArchitecture, "image_properties_default_architecture", "",
			"Architecture of images that do not name one, such as x86_64. Empty means any."),
		integer(&f.MaxIOOps, "max_io_ops_per_host", 8, 0, math.MaxInt32,
			"How much heavy work of instances a host may have, for IoOpsFilter and AggregateIoOpsFilter: a host with as much takes no more."),
		integer(&f.MaxInstances, "max_instances_per_host", 50, 1, math.MaxInt32,
			"How many instances a host may have, for NumInstancesFilter and AggregateNumInstancesFilter."),
		list(&f.IsolatedImages, "isolated_images", nil, "Images that may be on isolated hosts only, for IsolatedHostsFilter, by their UUIDs."),
		list(&f.IsolatedHosts, "isolated_hosts", nil, "Hosts that are isolated, for IsolatedHostsFilter."),
		boolean(&f.RestrictIsolatedHosts, "restrict_isolated_hosts_to_isolated_images", true, "Isolated hosts take isolated images only."),
		text(&f.ImagePropsNamespace, "aggregate_image_properties_isolation_namespace", "",
			"How the keys begin, before the separator, that AggregateImagePropertiesIsolation looks at in the metadata of aggregates. "+
				"Empty means that it looks at all."),
		text(&f.ImagePropsSeparator, "aggregate_image_properties_isolation_separator", ".", "What stands between that and the rest of the key."),
	}
}
