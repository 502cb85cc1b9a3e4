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
}

// Enabled are the filters of Nova that run where the operator names none, in their
// order (nova/conf/scheduler.py enabled_filters).
var Enabled = []string{
	"ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter",
}

// ofNova gives Nova's filters by name.
func ofNova(o Options) map[string]Filter {
	known := map[string]Filter{}
	for _, f := range []Filter{
		Compute{}, ComputeCapabilities{}, &ImageProperties{DefaultArchitecture: o.ImagePropertiesDefaultArchitecture},
		ServerGroupAntiAffinity{}, ServerGroupAffinity{}, AvailabilityZone{}, MultiTenancy{},
	} {
		known[f.Name()] = f
	}
	return known
}

// missing are the filters of Nova that are not here (nova/scheduler/filters).
var missing = []string{
	"AggregateImagePropertiesIsolation", "AggregateInstanceExtraSpecsFilter", "AggregateIoOpsFilter", "AggregateNumInstancesFilter",
	"AggregateTypeAffinityFilter", "AllHostsFilter", "DifferentHostFilter", "IoOpsFilter", "IsolatedHostsFilter", "JsonFilter", "MetricsFilter",
	"NUMATopologyFilter", "NumInstancesFilter", "PciPassthroughFilter", "SameHostFilter", "SimpleCIDRAffinityFilter",
}

// New gives the filters that always run, then those that enabled names, in its order
// and each once. The first ones do Placement's work and the reservations'. It fails
// with an Invalid fault where enabled names one that is not here.
func New(enabled []string, o Options) ([]Filter, error) {
	o.Reservation.kept = new(keptPromises)
	list := []Filter{Destination{}, o.Reservation, Zone{o.DefaultAvailabilityZone}, Aggregates{}}
	if o.LimitTenantsToPlacementAggregate {
		list = append(list, TenantAggregates{o.PlacementAggregateRequiredForTenants})
	}
	if o.EnableIsolatedAggregateFiltering {
		list = append(list, IsolatedAggregates{o.OwnTraits})
	}
	list = append(list, Traits{}, Capacity{}, &Judgeable{})
	known := ofNova(o)
	for _, name := range enabled {
		f, is := known[name]
		switch {
		case !is && slices.Contains(missing, name):
			return nil, fault.Field("enabled_filters", "%s of Nova is not in Almanac, which has %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case !is && slices.ContainsFunc(list, named(name)):
			// It runs anyway.
		case !is:
			return nil, fault.Field("enabled_filters", "%s", fault.Unknown("filter", name, slices.Sorted(maps.Keys(known))))
		case !slices.ContainsFunc(list, named(name)):
			list = append(list, f)
		}
	}
	return list, nil
}

func named(name string) func(Filter) bool { return func(f Filter) bool { return f.Name() == name } }
