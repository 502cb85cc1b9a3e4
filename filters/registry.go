// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Options are the settings of the filters, named as in Nova's configuration.
type Options struct {
	Reservation Reservation
	// OwnTraits is the prefix of Almanac's traits (IsolatedAggregates.Except).
	OwnTraits                            string
	DefaultAvailabilityZone              string
	EnableIsolatedAggregateFiltering     bool
	LimitTenantsToPlacementAggregate     bool
	PlacementAggregateRequiredForTenants bool
	ImagePropertiesDefaultArchitecture   string

	IsolatedImages, IsolatedHosts              []string
	RestrictIsolatedHostsToIsolatedImages      bool
	MaxIOOpsPerHost, MaxInstancesPerHost       int64
	AggregateImagePropertiesIsolationNamespace string // empty: every key counts
	AggregateImagePropertiesIsolationSeparator string
	MetricsWeightSetting                       []string // as Metrics.Setting
	// Evicts is Capacity.Evicts.
	Evicts bool
	// Yield is the filter for a minimum yield. It does not run if its Floor is 0.
	Yield Yield
	// Alone means that no other scheduler handles requests that Almanac cannot judge.
	Alone bool
	// Available are the classes that may be enabled (available_filters): AllFilters or paths of
	// Nova's classes. Empty means AllFilters.
	Available []string
}

// Enabled are Nova's filters that run by default, in order (nova/conf/scheduler.py
// enabled_filters).
var Enabled = []string{
	"ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
}

// AllFilters is the entry of available_filters that stands for all of Nova's filters.
const AllFilters = "nova.scheduler.filters.all_filters"

// choices are the filters of Nova that can be enabled, each with the module of its class in
// package nova.scheduler.filters.
var choices = []struct {
	module string
	make   func(Options) Filter
}{
	{"aggregate_image_properties_isolation", func(o Options) Filter {
		return ImageIsolation{Namespace: o.AggregateImagePropertiesIsolationNamespace, Separator: o.AggregateImagePropertiesIsolationSeparator}
	}},
	{"aggregate_instance_extra_specs", func(Options) Filter { return InstanceExtraSpecs{} }},
	{"io_ops_filter", func(o Options) Filter { return AggregateIOOps(o.MaxIOOpsPerHost) }},
	{"aggregate_multitenancy_isolation", func(Options) Filter { return MultiTenancy{} }},
	{"num_instances_filter", func(o Options) Filter { return AggregateNumInstances(o.MaxInstancesPerHost) }},
	{"type_filter", func(Options) Filter { return TypeAffinity{} }},
	{"all_hosts_filter", func(Options) Filter { return allHosts }},
	{"availability_zone_filter", func(Options) Filter { return AvailabilityZone{} }},
	{"compute_capabilities_filter", func(Options) Filter { return ComputeCapabilities{} }},
	{"compute_filter", func(Options) Filter { return Compute{} }},
	{"affinity_filter", func(Options) Filter { return DifferentHost{} }},
	{"image_props_filter", func(o Options) Filter {
		return &ImageProperties{DefaultArchitecture: o.ImagePropertiesDefaultArchitecture}
	}},
	{"io_ops_filter", func(o Options) Filter { return IOOps(o.MaxIOOpsPerHost) }},
	{"isolated_hosts_filter", func(o Options) Filter {
		return &IsolatedHosts{Images: o.IsolatedImages, Hosts: o.IsolatedHosts, Open: !o.RestrictIsolatedHostsToIsolatedImages}
	}},
	{"json_filter", func(Options) Filter { return JSON{} }},
	{"metrics_filter", func(o Options) Filter { return Metrics{o.MetricsWeightSetting} }},
	{"numa_topology_filter", func(Options) Filter { return numaTopology }},
	{"num_instances_filter", func(o Options) Filter { return NumInstances(o.MaxInstancesPerHost) }},
	{"pci_passthrough_filter", func(Options) Filter { return pciPassthrough }},
	{"affinity_filter", func(Options) Filter { return SameHost{} }},
	{"affinity_filter", func(Options) Filter { return ServerGroupAffinity{} }},
	{"affinity_filter", func(Options) Filter { return ServerGroupAntiAffinity{} }},
	{"affinity_filter", func(Options) Filter { return &SimpleCIDRAffinity{} }},
}

// choice is a filter of Nova with the path of its class.
type choice struct {
	Filter
	path string
}

// ofNova returns Nova's filters, by their names.
func ofNova(o Options) map[string]choice {
	known := make(map[string]choice, len(choices))
	for _, c := range choices {
		f := c.make(o)
		known[f.Name()] = choice{f, "nova.scheduler.filters." + c.module + "." + f.Name()}
	}
	return known
}

// Names returns the names of Nova's filters, sorted.
func Names() []string { return slices.Sorted(maps.Keys(ofNova(Options{}))) }

// New returns the filters that always run, then those in enabled, in order and each once. The
// first ones apply Placement's rules and those of reservations. It returns an Invalid fault if
// enabled names a filter that is unknown, is not available, or would refuse every host.
func New(enabled []string, o Options) ([]Filter, error) {
	o.Reservation.kept = new(keptPromises)
	list := []Filter{Destination{}, o.Reservation, Zone{o.DefaultAvailabilityZone}, Aggregates{}}
	if o.LimitTenantsToPlacementAggregate {
		list = append(list, TenantAggregates{o.PlacementAggregateRequiredForTenants})
	}
	if o.EnableIsolatedAggregateFiltering {
		list = append(list, IsolatedAggregates{o.OwnTraits})
	}
	list = append(list, Traits{}, Capacity{o.Evicts})
	if o.Yield.Floor > 0 {
		list = append(list, &o.Yield)
	}
	list = append(list, &Judgeable{})
	known := ofNova(o)
	available, err := o.available(known)
	if err != nil {
		return nil, err
	}
	for _, name := range enabled {
		if slices.ContainsFunc(list, named(name)) {
			continue
		}
		if err := o.refuse(name, known, available); err != nil {
			return nil, err
		}
		list = append(list, known[name].Filter)
	}
	return list, nil
}

// refuse returns the reason why a filter cannot be enabled.
func (o Options) refuse(name string, known map[string]choice, available []string) error {
	const field = "enabled_filters"
	class, metrics := name[strings.LastIndexByte(name, '.')+1:], Metrics{o.MetricsWeightSetting}
	_, isName := known[name]
	_, isClass := known[class]
	switch {
	case slices.Contains(available, name):
		if name == metrics.Name() && o.Alone && metrics.untold() != "" {
			return fault.Field(field, "%s would refuse all hosts: %s, and there is no nova-scheduler to pass requests on to", name, metrics.untold())
		}
		return nil
	case isName:
		return fault.Field(field, "%s is not among the available_filters", name)
	case name == AllFilters:
		return fault.Field(field, "%s is for available_filters; enabled_filters lists filters by name", name)
	case isClass:
		return fault.Field(field, "%s is the path of a class; as in Nova, use its name alone: %s", name, class)
	default:
		return fault.Field(field, "%s", fault.Unknown("filter", name, Names()))
	}
}

// available returns the filters of Nova that may be enabled. It returns an error if a class is
// not Nova's, since Almanac does not run Python.
func (o Options) available(known map[string]choice) (names []string, err error) {
	if len(o.Available) == 0 {
		return Names(), nil
	}
	for _, path := range o.Available {
		if path == AllFilters {
			names = append(names, Names()...)
			continue
		}
		class := path[strings.LastIndexByte(path, '.')+1:]
		if c, is := known[class]; !is || path != c.path {
			return nil, fault.Field("available_filters", "%q is not a filter of Nova; Almanac cannot run other filters in Python", path)
		}
		names = append(names, class)
	}
	return names, nil
}

func named(name string) func(Filter) bool { return func(f Filter) bool { return f.Name() == name } }
