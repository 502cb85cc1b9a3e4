package weighers

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// AllWeighers is the name, in weight_classes, that stands for all of them.
const AllWeighers = "nova.scheduler.weights.all_weighers"

// Ports are what weighers need to know beside the states of the hosts.
type Ports struct {
	Promises     Promises
	Efficiencies Efficiencies
}

// choice is a weigher that may be chosen.
type choice struct {
	path       string // of Nova's class, or the name of ours
	option     string
	multiplier float64 // by default
	make       func(Ports) Weighted
}

// choices are all weighers, in the order in which weights are added. The defaults of
// Nova's weighers are Nova's (nova/conf/scheduler.py). Those of ours fit in beside them,
// where CPU, memory, disk and operations make a difference of 1 each:
//
//   - KWRanking, 1: as much as free memory. The most efficient host has 1, one with half
//     of its FLOPS per watt 1/2; where nobody has told of any, all have 0.
//   - free time, 10: more than these five together as long as the claim is less than a
//     day ahead, so that such a host is taken only where no host without a claim can hold
//     the request, and few guests have to leave for a reservation. From nine days ahead
//     on it is less than one of them.
var choices = []choice{
	{"nova.scheduler.weights.cpu.CPUWeigher", "cpu_weight_multiplier", 1, func(Ports) Weighted { return Weighted{Weigher: CPUWeigher{}, Min: new(0.0)} }},
	{"nova.scheduler.weights.ram.RAMWeigher", "ram_weight_multiplier", 1, func(Ports) Weighted { return Weighted{Weigher: RAMWeigher{}, Min: new(0.0)} }},
	{"nova.scheduler.weights.disk.DiskWeigher", "disk_weight_multiplier", 1, func(Ports) Weighted { return Weighted{Weigher: DiskWeigher{}, Min: new(0.0)} }},
	{"nova.scheduler.weights.io_ops.IoOpsWeigher", "io_ops_weight_multiplier", -1, func(Ports) Weighted { return Weighted{Weigher: IoOpsWeigher{}, Min: new(0.0)} }},
	{"nova.scheduler.weights.compute.BuildFailureWeigher", "build_failure_weight_multiplier", 1e6, func(Ports) Weighted {
		return Weighted{Weigher: BuildFailureWeigher{}, Negated: true}
	}},
	{"FreeTimeWeigher", "free_time_weight_multiplier", 10, func(p Ports) Weighted {
		return Weighted{Weigher: &FreeTimeWeigher{Promises: p.Promises}, Min: new(0.0), Max: new(1.0)}
	}},
	{"KWRankingWeigher", "kw_ranking_weight_multiplier", 1, func(p Ports) Weighted {
		return Weighted{Weigher: &KWRankingWeigher{Efficiencies: p.Efficiencies}, Min: new(0.0)}
	}},
}

// name is the last part of the path.
func (c choice) name() string { return c.path[strings.LastIndexByte(c.path, '.')+1:] }

// Multipliers gives the default of each multiplier, by the name of its option.
func Multipliers() map[string]float64 {
	defaults := make(map[string]float64, len(choices))
	for _, c := range choices {
		defaults[c.option] = c.multiplier
	}
	return defaults
}

// Choose gives the weighers that are named as in weight_classes: Nova's by class or by
// its path, ours by name, or AllWeighers. multipliers has those that differ from the
// default, by option. Whatever the order of names, weights are added in one order, and
// what is named twice counts once. It fails with an Invalid fault at a name or an option
// that is not known, and at a multiplier that is no finite number.
func Choose(names []string, multipliers map[string]float64, ports Ports) ([]Weighted, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		if name == AllWeighers {
			for _, c := range choices {
				wanted[c.option] = true
			}
			continue
		}
		i := slices.IndexFunc(choices, func(c choice) bool { return name == c.name() || name == c.path })
		if i < 0 {
			return nil, fault.Field("weight_classes", "%s", unknown(name))
		}
		wanted[choices[i].option] = true
	}
	options := slices.Sorted(maps.Keys(Multipliers()))
	for _, option := range slices.Sorted(maps.Keys(multipliers)) {
		if !slices.Contains(options, option) {
			return nil, fault.Field(option, "%s", fault.Unknown("multiplier", option, options))
		}
		if m := multipliers[option]; math.IsNaN(m) || math.IsInf(m, 0) {
			return nil, fault.Field(option, "is not a finite number")
		}
	}
	var chosen []Weighted
	for _, c := range choices {
		if !wanted[c.option] {
			continue
		}
		w := c.make(ports)
		w.Option, w.Multiplier = c.option, c.multiplier
		if m, set := multipliers[c.option]; set {
			w.Multiplier = m
		}
		chosen = append(chosen, w)
	}
	return chosen, nil
}

// unknown gives the sentence for a name that is none: with the nearest, written as the
// name is.
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
