package app

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// pipeline returns the pipeline that chooses hosts. With nil promises and hosts it only validates
// the names in the configuration.
func pipeline(c config.Config, evictor *preemption.Evictor, promises filters.Promises, hosts weighers.Efficiencies) (*scheduler.Pipeline, error) {
	list, err := filters.New(c.Filters.EnabledFilters, filterOptions(c, promises))
	if err != nil {
		return nil, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	period, err := preemption.NewCost(preemption.PartialHour, costOptions(c))
	if err != nil {
		return nil, fmt.Errorf("[preemptible]: %w", err)
	}
	weighted, err := chosenWeighers(c, weighers.Ports{Promises: promises, Efficiencies: hosts, Evictor: evictor, Period: period})
	if err != nil {
		return nil, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	f := c.Filters
	return &scheduler.Pipeline{
		Filters: list, Weighers: weighted, SubsetSize: f.HostSubsetSize, ShuffleBest: f.ShuffleBest, Evictor: evictor, Spares: true,
	}, nil
}

// evicts reports whether preemptible instances are evicted for others.
func evicts(c config.Config) bool {
	return c.Scheduler.Mode == modeReplace && c.Preemptible.MakeRoom != stayPut
}

// fills reports whether preemptible instances may use idle reserved hosts. They may not if
// requests can be passed on: those cause no evictions, so an owner's request might find the
// reserved host full.
func fills(c config.Config) bool {
	return evicts(c) && c.Preemptible.FillReserved && c.Scheduler.ForwardTransportURL == ""
}

// stayPut is the value of [preemptible] make_room that turns evictions off.
const stayPut = "no"

// evictor returns the evictor; nil if evictions are off.
func evictor(c config.Config) (*preemption.Evictor, error) {
	if !evicts(c) {
		return nil, nil
	}
	cost, err := preemption.NewCost(c.Preemptible.Cost, costOptions(c))
	if err != nil {
		return nil, fmt.Errorf("[preemptible]: %w", err)
	}
	return &preemption.Evictor{Cost: cost}, nil
}

func costOptions(c config.Config) preemption.CostOptions {
	p := c.Preemptible
	return preemption.CostOptions{Period: seconds(p.CostPeriod), PriceSpec: p.PriceSpec, PrioritySpec: p.PrioritySpec}
}

func filterOptions(c config.Config, promises filters.Promises) filters.Options {
	return filters.Options{
		Reservation: reservationFilter(c, promises),
		OwnTraits:   fence.OwnPrefix, DefaultAvailabilityZone: c.Scheduler.DefaultZone,
		EnableIsolatedAggregateFiltering:     c.Scheduler.IsolateAggregates,
		LimitTenantsToPlacementAggregate:     c.Scheduler.LimitTenants,
		PlacementAggregateRequiredForTenants: c.Scheduler.TenantAggregateRequired,
		ImagePropertiesDefaultArchitecture:   c.Filters.DefaultArchitecture,

		IsolatedImages: c.Filters.IsolatedImages, IsolatedHosts: c.Filters.IsolatedHosts,
		RestrictIsolatedHostsToIsolatedImages:      c.Filters.RestrictIsolatedHosts,
		MaxIOOpsPerHost:                            int64(c.Filters.MaxIOOps),
		MaxInstancesPerHost:                        int64(c.Filters.MaxInstances),
		AggregateImagePropertiesIsolationNamespace: c.Filters.ImagePropsNamespace,
		AggregateImagePropertiesIsolationSeparator: c.Filters.ImagePropsSeparator,
		MetricsWeightSetting:                       c.Weighers.MetricsSetting,
		Available:                                  c.Filters.AvailableFilters,
		Evicts:                                     evicts(c),
		Yield:                                      filters.Yield{Floor: c.Packing.YieldFloor, Share: c.Packing.CPUShare},
		Alone:                                      c.Scheduler.ForwardTransportURL == "",
	}
}

// prefilters returns the request filters of Nova that require traits, for Nova's configuration and
// release.
func prefilters(c config.Config) object.Prefilters {
	since := func(release string) bool {
		return slices.Index(weighers.Releases, c.Weighers.Release) >= slices.Index(weighers.Releases, release)
	}
	p := c.Prefilters
	return object.Prefilters{
		ImageTypes: p.ImageTypes, ImageMetadata: p.ImageMetadata, RoutedNetworks: p.RoutedNetworks,
		PackedVirtqueues: since("caracal"), Sound: since("flamingo"),
	}
}

func chosenWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	w := c.Weighers
	p.Nova = weighers.Nova{
		Releases: weighers.Releases[:slices.Index(weighers.Releases, w.Release)+1], ImageProperties: w.ImagePropsSetting, Metrics: w.MetricsSetting,
		Alone: c.Scheduler.Mode == modeReplace && c.Scheduler.ForwardTransportURL == "",
	}
	return weighers.Choose(w.Classes, map[string]float64{
		"cpu_weight_multiplier": w.CPU, "ram_weight_multiplier": w.RAM, "disk_weight_multiplier": w.Disk,
		"io_ops_weight_multiplier": w.IOOps, "build_failure_weight_multiplier": w.BuildFailure,
		"pci_weight_multiplier": w.PCI, "soft_affinity_weight_multiplier": w.SoftAffinity,
		"soft_anti_affinity_weight_multiplier": w.SoftAntiAffinity, "cross_cell_move_weight_multiplier": w.CrossCell,
		"metrics_weight_multiplier": w.Metrics, "hypervisor_version_weight_multiplier": w.HypervisorVersion,
		"num_instances_weight_multiplier": w.NumInstances, "image_props_weight_multiplier": w.ImageProps,
		"free_time_weight_multiplier": w.FreeTime, "kw_ranking_weight_multiplier": w.KWRanking,
		"overcommit_weight_multiplier": w.Overcommit, "preemption_cost_weight_multiplier": w.PreemptionCost,
		"period_weight_multiplier": w.Period, "preemptible_count_weight_multiplier": w.PreemptibleCount,
	}, p)
}

// ownWeighers returns the weighers that Nova does not have, with their multipliers.
func ownWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	c.Weighers.Classes = []string{(*weighers.FreeTimeWeigher)(nil).Name(), (*weighers.KWRankingWeigher)(nil).Name()}
	return chosenWeighers(c, p)
}

// reservationFilter returns the filter that keeps instances off promised hosts.
func (a *App) reservationFilter() filters.Reservation { return reservationFilter(a.config, a.desk) }

func reservationFilter(c config.Config, promises filters.Promises) filters.Reservation {
	return filters.Reservation{
		Promises: promises, Fence: filters.Fence(c.Reservation.Fence), LeadTime: seconds(c.Reservation.LeadTime),
		Eviction: seconds(c.Reservation.EvictionTime), Fill: fills(c), Class: fence.OwnName,
	}
}
