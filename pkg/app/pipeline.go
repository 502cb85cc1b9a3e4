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
	period, err := preemption.NewCost(preemption.PartialHour, c.Preemptible.CostOptions)
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
	return c.Scheduler.Mode == config.ModeReplace && c.Preemptible.Action != config.NeverPreempt
}

// fills reports whether preemptible instances may use idle reserved hosts. They may not if
// requests can be passed on: those cause no evictions, so an owner's request might find the
// reserved host full.
func fills(c config.Config) bool {
	return evicts(c) && c.Preemptible.FillReserved && c.Scheduler.ForwardTransportURL == ""
}

// newEvictor returns the evictor; nil if evictions are off.
func newEvictor(c config.Config) (*preemption.Evictor, error) {
	if !evicts(c) {
		return nil, nil
	}
	cost, err := preemption.NewCost(c.Preemptible.Cost, c.Preemptible.CostOptions)
	if err != nil {
		return nil, fmt.Errorf("[preemptible]: %w", err)
	}
	return &preemption.Evictor{Cost: cost}, nil
}

func filterOptions(c config.Config, promises filters.Promises) filters.Options {
	o := c.Filters.Options
	o.Reservation, o.OwnTraits = reservationFilter(c, promises), fence.OwnPrefix
	o.MetricsWeightSetting = c.Weighers.Nova.Metrics
	o.Evicts, o.Yield, o.Alone = evicts(c), c.Packing.Yield, c.Scheduler.ForwardTransportURL == ""
	return o
}

// prefilters returns the request filters of Nova that require traits, for Nova's configuration and
// release.
func prefilters(c config.Config) object.Prefilters {
	since := func(release string) bool {
		return slices.Index(weighers.Releases, c.Weighers.Release) >= slices.Index(weighers.Releases, release)
	}
	p := c.Prefilters
	p.PackedVirtqueues, p.Sound = since("caracal"), since("flamingo")
	return p
}

func chosenWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	w := c.Weighers
	p.Nova = w.Nova
	p.Nova.Releases = weighers.Releases[:slices.Index(weighers.Releases, w.Release)+1]
	p.Nova.Alone = c.Scheduler.Mode == config.ModeReplace && c.Scheduler.ForwardTransportURL == ""
	return weighers.Choose(w.Classes, w.Multipliers, p)
}

// ownWeighers returns the weighers that Nova does not have, with their multipliers.
func ownWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	c.Weighers.Classes = []string{(*weighers.FreeTimeWeigher)(nil).Name(), (*weighers.KWRankingWeigher)(nil).Name()}
	return chosenWeighers(c, p)
}

// reservationFilter returns the filter that keeps instances off promised hosts.
func reservationFilter(c config.Config, promises filters.Promises) filters.Reservation {
	return filters.Reservation{
		Promises: promises, Fence: c.Reservation.Fence, LeadTime: c.Reservation.Rules.LeadTime,
		Eviction: c.Reservation.Rules.Eviction, Fill: fills(c), Class: fence.OwnName,
	}
}
