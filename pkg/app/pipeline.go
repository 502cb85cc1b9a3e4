package app

import (
	"fmt"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// pipeline gives how hosts are chosen. Without promises and hosts it only shows whether
// the names in the configuration are known.
func pipeline(c config.Config, promises filters.Promises, hosts weighers.Efficiencies) (*scheduler.Pipeline, error) {
	list, err := filters.New(c.Filters.EnabledFilters, filterOptions(c, promises))
	if err != nil {
		return nil, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	weighted, err := chosenWeighers(c, weighers.Ports{Promises: promises, Efficiencies: hosts})
	if err != nil {
		return nil, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	f := c.Filters
	return &scheduler.Pipeline{Filters: list, Weighers: weighted, SubsetSize: f.HostSubsetSize, ShuffleBest: f.ShuffleBest}, nil
}

func filterOptions(c config.Config, promises filters.Promises) filters.Options {
	return filters.Options{
		Reservation: reservationFilter(c, promises),
		OwnTraits:   fence.OwnPrefix, DefaultAvailabilityZone: c.Scheduler.DefaultZone,
		EnableIsolatedAggregateFiltering:     c.Scheduler.IsolateAggregates,
		LimitTenantsToPlacementAggregate:     c.Scheduler.LimitTenants,
		PlacementAggregateRequiredForTenants: c.Scheduler.TenantAggregateRequired,
		ImagePropertiesDefaultArchitecture:   c.Filters.DefaultArchitecture,
	}
}

func chosenWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	w := c.Weighers
	return weighers.Choose(w.Classes, map[string]float64{
		"cpu_weight_multiplier": w.CPU, "ram_weight_multiplier": w.RAM, "disk_weight_multiplier": w.Disk,
		"io_ops_weight_multiplier": w.IOOps, "build_failure_weight_multiplier": w.BuildFailure,
		"free_time_weight_multiplier": w.FreeTime, "kw_ranking_weight_multiplier": w.KWRanking,
	}, p)
}

// reservationFilter gives what keeps instances off promised hosts.
func (a *App) reservationFilter() filters.Reservation { return reservationFilter(a.config, a.desk) }

func reservationFilter(c config.Config, promises filters.Promises) filters.Reservation {
	return filters.Reservation{
		Promises: promises, Fence: filters.Fence(c.Reservation.Fence), LeadTime: seconds(c.Reservation.LeadTime),
		Eviction: seconds(c.Reservation.EvictionTime), Class: fence.OwnName,
	}
}
