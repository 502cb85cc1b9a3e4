package filters

import (
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Options are the settings of the filters, by the names that Nova has for them.
type Options struct {
	Reservation Reservation
	// OwnTraits begins the names of Almanac's traits (IsolatedAggregates.Except).
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
	// Evicts is that of Capacity.
	Evicts bool
	// Yield is a floor under the yields of hosts; without one there is no such filter.
	Yield Yield
	// Alone says that there is no other scheduler for what cannot be judged here.
	Alone bool
	// Available are the classes that enabled filters may be (available_filters): AllFilters
	// or paths of classes of Nova. Empty is AllFilters.
	Available []string
}

// Enabled are the filters of Nova that run where the operator names none, in their
// order (nova/conf/scheduler.py enabled_filters).
var Enabled = []string{
	"ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
}

// AllFilters is the name, among the available filters, that stands for all of Nova's.
const AllFilters = "nova.scheduler.filters.all_filters"

// modules are the modules of Nova's filters in package nova.scheduler.filters.
var modules = map[string]string{
	"AggregateImagePropertiesIsolation": "aggregate_image_properties_isolation",
	"AggregateInstanceExtraSpecsFilter": "aggregate_instance_extra_specs",
	"AggregateIoOpsFilter":              "io_ops_filter",
	"AggregateMultiTenancyIsolation":    "aggregate_multitenancy_isolation",
	"AggregateNumInstancesFilter":       "num_instances_filter",
	"AggregateTypeAffinityFilter":       "type_filter",
	"AllHostsFilter":                    "all_hosts_filter",
	"AvailabilityZoneFilter":            "availability_zone_filter",
	"ComputeCapabilitiesFilter":         "compute_capabilities_filter",
	"ComputeFilter":                     "compute_filter",
	"DifferentHostFilter":               "affinity_filter",
	"ImagePropertiesFilter":             "image_props_filter",
	"IoOpsFilter":                       "io_ops_filter",
	"IsolatedHostsFilter":               "isolated_hosts_filter",
	"JsonFilter":                        "json_filter",
	"MetricsFilter":                     "metrics_filter",
	"NUMATopologyFilter":                "numa_topology_filter",
	"NumInstancesFilter":                "num_instances_filter",
	"PciPassthroughFilter":              "pci_passthrough_filter",
	"SameHostFilter":                    "affinity_filter",
	"ServerGroupAffinityFilter":         "affinity_filter",
	"ServerGroupAntiAffinityFilter":     "affinity_filter",
	"SimpleCIDRAffinityFilter":          "affinity_filter",
}

// Names gives the names of Nova's filters, sorted.
func Names() []string { return slices.Sorted(maps.Keys(modules)) }

// pathOf gives the path of the class of a filter of Nova.
func pathOf(name string) string { return "nova.scheduler.filters." + modules[name] + "." + name }

// ofNova gives Nova's filters by name.
func ofNova(o Options) map[string]Filter {
	known := map[string]Filter{}
	for _, f := range []Filter{
		allHosts, numaTopology, pciPassthrough, Metrics{o.MetricsWeightSetting},
		Compute{}, ComputeCapabilities{}, &ImageProperties{DefaultArchitecture: o.ImagePropertiesDefaultArchitecture},
		ServerGroupAntiAffinity{}, ServerGroupAffinity{}, AvailabilityZone{}, MultiTenancy{}, TypeAffinity{}, InstanceExtraSpecs{},
		ImageIsolation{Namespace: o.AggregateImagePropertiesIsolationNamespace, Separator: o.AggregateImagePropertiesIsolationSeparator},
		SameHost{}, DifferentHost{}, &SimpleCIDRAffinity{}, JSON{},
		&IsolatedHosts{Images: o.IsolatedImages, Hosts: o.IsolatedHosts, Open: !o.RestrictIsolatedHostsToIsolatedImages},
		IOOps(o.MaxIOOpsPerHost), AggregateIOOps(o.MaxIOOpsPerHost), NumInstances(o.MaxInstancesPerHost), AggregateNumInstances(o.MaxInstancesPerHost),
	} {
		known[f.Name()] = f
	}
	return known
}

// New gives the filters that always run, then those that enabled names, in its order
// and each once. The first ones do Placement's work and the reservations'. It fails
// with an Invalid fault where enabled names one that is not here, is not available, or
// would let no host pass.
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
	available, err := o.available()
	if err != nil {
		return nil, err
	}
	known := ofNova(o)
	for _, name := range enabled {
		if slices.ContainsFunc(list, named(name)) {
			continue
		}
		if err := o.refuse(name, available); err != nil {
			return nil, err
		}
		list = append(list, known[name])
	}
	return list, nil
}

// refuse says why a filter cannot be enabled.
func (o Options) refuse(name string, available []string) error {
	const field = "enabled_filters"
	class, metrics := name[strings.LastIndexByte(name, '.')+1:], Metrics{o.MetricsWeightSetting}
	switch {
	case slices.Contains(available, name):
		if name == metrics.Name() && o.Alone && metrics.untold() != "" {
			return fault.Field(field, "%s would refuse all hosts: %s, and there is no nova-scheduler to pass requests on to", name, metrics.untold())
		}
		return nil
	case modules[name] != "":
		return fault.Field(field, "%s is not among the available_filters", name)
	case name == AllFilters:
		return fault.Field(field, "%s is for available_filters; enabled are filters by name", name)
	case modules[class] != "":
		return fault.Field(field, "%s is the path of a class; as in Nova, its name alone is meant here: %s", name, class)
	default:
		return fault.Field(field, "%s", fault.Unknown("filter", name, Names()))
	}
}

// available gives which of Nova's filters may be enabled. It fails where a class is not
// one of Nova's, since Python is not run here.
func (o Options) available() (names []string, err error) {
	if len(o.Available) == 0 {
		return Names(), nil
	}
	for _, path := range o.Available {
		if path == AllFilters {
			names = append(names, Names()...)
			continue
		}
		class := path[strings.LastIndexByte(path, '.')+1:]
		if modules[class] == "" || path != pathOf(class) {
			return nil, fault.Field("available_filters", "%q is no filter of Nova; filters of others, in Python, do not run here", path)
		}
		names = append(names, class)
	}
	return names, nil
}

func named(name string) func(Filter) bool { return func(f Filter) bool { return f.Name() == name } }
