// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// AllWeighers is the entry of weight_classes that stands for all weighers.
const AllWeighers = "nova.scheduler.weights.all_weighers"

// Ports are what weighers need in addition to the states of the hosts.
type Ports struct {
	Promises     Promises
	Efficiencies Efficiencies
	// Evictor chooses the instances that make room, and Period is the cost in lost charging
	// periods; nil means none.
	Evictor *preemption.Evictor
	Period  preemption.Cost
	Nova    Nova
}

// Nova is the part of Nova's configuration that affects weighers, without their names and
// multipliers.
type Nova struct {
	// ImageProperties and Metrics are image_props_weight_setting and [metrics] weight_setting,
	// each entry "name=ratio".
	ImageProperties, Metrics []string
	// Alone is true if no nova-scheduler handles requests that Almanac cannot judge: Choose then
	// refuses weighers that would need unknown facts.
	Alone bool
}

// choice is a weigher that can be configured.
type choice struct {
	path       string       // of Nova's class, or the name of ours
	part       release.Part // of Nova's releases: those without it have no such weigher
	option     string
	multiplier float64 // by default
	make       func(Ports) (Weighted, error)
}

// choices are all weighers, in the order in which AllWeighers adds their weights. The defaults of
// Nova's weighers are Nova's (nova/conf/scheduler.py). Those of ours are chosen to fit beside them,
// where CPU, memory, disk and operations make a difference of 1 each:
//
//   - KWRanking, 1: as much as free memory. The most efficient host has 1, one with half
//     of its FLOPS per watt 1/2; without any known efficiency all have 0.
//   - free time, 10: more than these five together as long as the claim is less than a
//     day ahead, so that such a host is chosen only if no host without a claim has room for
//     the request, and few instances must leave for a reservation. PCI devices, soft
//     server groups and hypervisor versions, of 1 each, can outweigh it from six hours
//     ahead on. From nine days ahead on it is less than one of them.
//   - overcommitment, 0: the pipeline prefers hosts that need no eviction anyway, whatever
//     the weights.
//   - preemption cost, 100,000: a second of an hour counts 28, more than everything else
//     by default except failed builds and cells.
var choices = []choice{
	novas("cpu.CPUWeigher", release.Always, "cpu", 1, func() Weighted { return Weighted{Weigher: CPUWeigher{}, Min: new(0.0)} }),
	novas("ram.RAMWeigher", release.Always, "ram", 1, func() Weighted { return Weighted{Weigher: RAMWeigher{}, Min: new(0.0)} }),
	novas("disk.DiskWeigher", release.Always, "disk", 1, func() Weighted { return Weighted{Weigher: &DiskWeigher{}, Min: new(0.0)} }),
	novas("io_ops.IoOpsWeigher", release.Always, "io_ops", -1, func() Weighted { return Weighted{Weigher: IoOpsWeigher{}, Min: new(0.0)} }),
	novas("compute.BuildFailureWeigher", release.Always, "build_failure", 1e6, func() Weighted {
		return Weighted{Weigher: &BuildFailureWeigher{}, Negated: true}
	}),
	novas("pci.PCIWeigher", release.Always, "pci", 1, func() Weighted { return Weighted{Weigher: &PCIWeigher{}} }),
	novas("affinity.ServerGroupSoftAffinityWeigher", release.Always, "soft_affinity", 1, func() Weighted {
		return Weighted{Weigher: ServerGroupSoftAffinityWeigher{}}
	}),
	novas("affinity.ServerGroupSoftAntiAffinityWeigher", release.Always, "soft_anti_affinity", 1, func() Weighted {
		return Weighted{Weigher: ServerGroupSoftAntiAffinityWeigher{}}
	}),
	novas("cross_cell.CrossCellWeigher", release.Always, "cross_cell_move", 1e6, func() Weighted { return Weighted{Weigher: CrossCellWeigher{}} }),
	{"nova.scheduler.weights.metrics.MetricsWeigher", release.Always, "metrics_weight_multiplier", 1, metrics},
	novas("hypervisor_version.HypervisorVersionWeigher", release.HypervisorVersionWeigher, "hypervisor_version", 1, func() Weighted {
		return Weighted{Weigher: &HypervisorVersionWeigher{}}
	}),
	novas("num_instances.NumInstancesWeigher", release.NumInstancesWeigher, "num_instances", 0, func() Weighted { return Weighted{Weigher: NumInstancesWeigher{}} }),
	{"nova.scheduler.weights.image_props.ImagePropertiesWeigher", release.ImagePropertiesWeigher, "image_props_weight_multiplier", 0, imageProperties},
	{"FreeTimeWeigher", release.Always, "free_time_weight_multiplier", 10, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: &FreeTimeWeigher{Promises: p.Promises}, Min: new(0.0), Max: new(1.0)}, nil
	}},
	{"KWRankingWeigher", release.Always, "kw_ranking_weight_multiplier", 1, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: &KWRankingWeigher{Efficiencies: p.Efficiencies}, Min: new(0.0)}, nil
	}},
	{"OvercommitWeigher", release.Always, "overcommit_weight_multiplier", 0, func(Ports) (Weighted, error) {
		return Weighted{Weigher: OvercommitWeigher{}}, nil
	}},
	{"PreemptionCostWeigher", release.Always, "preemption_cost_weight_multiplier", 1e5, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: PreemptionCostWeigher{Evictor: p.Evictor}}, nil
	}},
	{"PeriodWeigher", release.Always, "period_weight_multiplier", 0, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: PeriodWeigher{p.Period}}, nil
	}},
	{"PreemptibleCountWeigher", release.Always, "preemptible_count_weight_multiplier", 0, func(Ports) (Weighted, error) {
		return Weighted{Weigher: PreemptibleCountWeigher{}}, nil
	}},
}

// novas returns the row of a weigher that Nova has too: its path, release, option and default
// multiplier.
func novas(path string, part release.Part, option string, multiplier float64, weighted func() Weighted) choice {
	return choice{
		"nova.scheduler.weights." + path, part, option + "_weight_multiplier", multiplier,
		func(Ports) (Weighted, error) { return weighted(), nil },
	}
}

// metrics returns the weigher of Nova's metrics. It fails if these count and nobody behind Almanac knows
// them.
func metrics(p Ports) (Weighted, error) {
	ratios, err := parseRatios("weight_setting of [metrics]", p.Nova.Metrics)
	if err == nil && p.Nova.Alone && len(ratios) > 0 {
		err = fault.Field("weight_classes", "has MetricsWeigher for the metrics in [metrics] weight_setting, which Nova's API does not return: "+
			"remove one of them, or pass such requests on ([scheduler] forward_transport_url)")
	}
	return Weighted{Weigher: MetricsWeigher{Ratios: ratios}}, err
}

func imageProperties(p Ports) (Weighted, error) {
	ratios, err := parseRatios("image_props_weight_setting", p.Nova.ImageProperties)
	return Weighted{Weigher: ImagePropertiesWeigher{Ratios: ratios}, OffAtZero: true}, err
}

// name returns the last part of the path.
func (c choice) name() string { return c.path[strings.LastIndexByte(c.path, '.')+1:] }

// Own returns the names of the weighers that Nova does not have.
func Own() (names []string) {
	for _, c := range choices {
		if !strings.Contains(c.path, ".") {
			names = append(names, c.path)
		}
	}
	return names
}

// Multipliers returns the default of each multiplier, by the name of its option.
func Multipliers() map[string]float64 {
	defaults := make(map[string]float64, len(choices))
	for _, c := range choices {
		defaults[c.option] = c.multiplier
	}
	return defaults
}

// Choose returns the weighers named as in weight_classes, in that order: Nova's by class or
// path, ours by name, or AllWeighers. A name that is repeated counts twice (nova/loadables.py
// get_matching_classes). multipliers contains those that differ from the default, by option. It
// returns an Invalid fault for an unknown name or option, a multiplier that is not finite, and
// what Ports.Nova excludes.
func Choose(names []string, multipliers map[string]float64, ports Ports) ([]Weighted, error) {
	if err := check(multipliers); err != nil {
		return nil, err
	}
	var chosen []Weighted
	for _, name := range names {
		wanted, err := named(name)
		if err != nil {
			return nil, err
		}
		for _, c := range wanted {
			w, err := c.make(ports)
			if err != nil {
				return nil, err
			}
			w.Part, w.Option, w.Multiplier = c.part, c.option, c.multiplier
			if m, set := multipliers[c.option]; set {
				w.Multiplier = m
			}
			if w.OffAtZero && w.Multiplier != 0 && ports.Nova.Alone {
				return nil, fault.Field(c.option, "makes %s count what Nova's API does not return: set it to 0, or pass such requests on "+
					"([scheduler] forward_transport_url)", w.Name())
			}
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}

// check returns an Invalid fault for an unknown option or a multiplier that is no finite number.
func check(multipliers map[string]float64) error {
	options := slices.Sorted(maps.Keys(Multipliers()))
	for _, option := range slices.Sorted(maps.Keys(multipliers)) {
		if !slices.Contains(options, option) {
			return fault.Field(option, "%s", fault.Unknown("multiplier", option, options))
		}
		if m := multipliers[option]; math.IsNaN(m) || math.IsInf(m, 0) {
			return fault.Field(option, "is not a finite number")
		}
	}
	return nil
}

// named returns the choices for which a name stands.
func named(name string) ([]choice, error) {
	if name == AllWeighers {
		return choices, nil
	}
	i := slices.IndexFunc(choices, func(c choice) bool { return name == c.name() || name == c.path })
	if i < 0 {
		return nil, fault.Field("weight_classes", "%s", unknown(name))
	}
	return choices[i : i+1], nil
}

// unknown returns the error sentence for an unknown name. It suggests the nearest known name, in
// the same form.
func unknown(name string) string {
	known := []string{AllWeighers}
	for _, c := range choices {
		if strings.Contains(name, ".") {
			known = append(known, c.path)
		} else {
			known = append(known, c.name())
		}
	}
	return fault.Unknown("weigher", name, known)
}
