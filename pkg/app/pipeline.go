// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
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

func chosenWeighers(c config.Config, p weighers.Ports) ([]weighers.Weighted, error) {
	return weighers.Choose(weighing(c, p))
}

// weighing returns the options of the weighers as Choose takes them; p has the ports that are no options.
func weighing(c config.Config, p weighers.Ports) (classes []string, multipliers map[string]float64, ports weighers.Ports) {
	w := c.Weighers
	p.Nova = w.Nova
	p.Nova.Alone = c.Scheduler.Mode == config.ModeReplace && c.Scheduler.ForwardTransportURL == ""
	return w.Classes, w.Multipliers, p
}

// missing returns a sentence for each configured filter and weigher of Nova that a release does not
// have. Nova's own scheduler of that release would not start with them.
func missing(c config.Config, of release.Release) (sentences []string) {
	for _, list := range []struct {
		option string
		kind   release.Kind
		names  []string
	}{
		{"enabled_filters", release.Filter, c.Filters.EnabledFilters},
		{"weight_classes", release.Weigher, c.Weighers.Classes},
	} {
		for _, name := range list.names {
			class := name[strings.LastIndexByte(name, '.')+1:]
			if part := release.Named(list.kind, class); !of.Has(part) {
				sentences = append(sentences, fmt.Sprintf("[filter_scheduler] %s has %s, which %v does not have: remove it", list.option, class, of))
			}
		}
	}
	return sentences
}

// ownWeighers returns the weighers with which POST /v1/scheduler/weigh answers, with their multipliers:
// those of ours that need no eviction.
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
