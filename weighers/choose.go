package weighers

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// AllWeighers is the name, in weight_classes, that stands for all of them.
const AllWeighers = "nova.scheduler.weights.all_weighers"

// Releases lists the releases of Nova that Almanac knows, by code name, the oldest first.
var Releases = []string{"zed", "antelope", "bobcat", "caracal", "dalmatian", "epoxy", "flamingo", "gazpacho"}

// Ports are what weighers need to know beside the states of the hosts.
type Ports struct {
	Promises     Promises
	Efficiencies Efficiencies
	// Evictor says who makes room, and Period what is lost of a period that is charged for;
	// nil: nobody, nothing.
	Evictor *preemption.Evictor
	Period  preemption.Cost
	Nova    Nova
}

// Nova is what the configuration says of Nova beside the weighers' names and multipliers.
type Nova struct {
	// Releases are those up to the cloud's, by their code names, such as "bobcat": a
	// weigher that came with another one does not exist.
	Releases []string
	// ImageProperties and Metrics are image_props_weight_setting and [metrics]
	// weight_setting, "name=ratio" each.
	ImageProperties, Metrics []string
	// Alone says that there is no nova-scheduler that requests can be passed on to: then a
	// weigher that would have to count what nobody tells is refused.
	Alone bool
}

// choice is a weigher that may be chosen.
type choice struct {
	path       string // of Nova's class, or the name of ours
	since      string // release of Nova; empty is before all that are known
	option     string
	multiplier float64 // by default
	make       func(Ports) (Weighted, error)
}

// choices are all weighers, in the order in which AllWeighers adds their weights. The
// defaults of Nova's weighers are Nova's (nova/conf/scheduler.py). Those of ours fit in
// beside them, where CPU, memory, disk and operations make a difference of 1 each:
//
//   - KWRanking, 1: as much as free memory. The most efficient host has 1, one with half
//     of its FLOPS per watt 1/2; where nobody has told of any, all have 0.
//   - free time, 10: more than these five together as long as the claim is less than a
//     day ahead, so that such a host is taken only where no host without a claim can hold
//     the request, and few guests have to leave for a reservation. PCI devices, soft
//     server groups and versions of hypervisors, of 1 each, can outdo it from six hours
//     ahead on. From nine days ahead on it is less than one of them.
//   - overcommitment, 0: the pipeline takes hosts on which nobody has to leave first, whatever
//     weighers say.
//   - preemption cost, 100,000: a second of an hour counts 28, more than all that is there
//     by default but failed builds and cells.
var choices = []choice{
	novas("cpu.CPUWeigher", "", "cpu", 1, func() Weighted { return Weighted{Weigher: CPUWeigher{}, Min: new(0.0)} }),
	novas("ram.RAMWeigher", "", "ram", 1, func() Weighted { return Weighted{Weigher: RAMWeigher{}, Min: new(0.0)} }),
	novas("disk.DiskWeigher", "", "disk", 1, func() Weighted { return Weighted{Weigher: &DiskWeigher{}, Min: new(0.0)} }),
	novas("io_ops.IoOpsWeigher", "", "io_ops", -1, func() Weighted { return Weighted{Weigher: IoOpsWeigher{}, Min: new(0.0)} }),
	novas("compute.BuildFailureWeigher", "", "build_failure", 1e6, func() Weighted {
		return Weighted{Weigher: &BuildFailureWeigher{}, Negated: true}
	}),
	novas("pci.PCIWeigher", "", "pci", 1, func() Weighted { return Weighted{Weigher: &PCIWeigher{}} }),
	novas("affinity.ServerGroupSoftAffinityWeigher", "", "soft_affinity", 1, func() Weighted {
		return Weighted{Weigher: ServerGroupSoftAffinityWeigher{}}
	}),
	novas("affinity.ServerGroupSoftAntiAffinityWeigher", "", "soft_anti_affinity", 1, func() Weighted {
		return Weighted{Weigher: ServerGroupSoftAntiAffinityWeigher{}}
	}),
	novas("cross_cell.CrossCellWeigher", "", "cross_cell_move", 1e6, func() Weighted { return Weighted{Weigher: CrossCellWeigher{}} }),
	{"nova.scheduler.weights.metrics.MetricsWeigher", "", "metrics_weight_multiplier", 1, metrics},
	novas("hypervisor_version.HypervisorVersionWeigher", "bobcat", "hypervisor_version", 1, func() Weighted {
		return Weighted{Weigher: &HypervisorVersionWeigher{}}
	}),
	novas("num_instances.NumInstancesWeigher", "bobcat", "num_instances", 0, func() Weighted { return Weighted{Weigher: NumInstancesWeigher{}} }),
	{"nova.scheduler.weights.image_props.ImagePropertiesWeigher", "epoxy", "image_props_weight_multiplier", 0, imageProperties},
	{"FreeTimeWeigher", "", "free_time_weight_multiplier", 10, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: &FreeTimeWeigher{Promises: p.Promises}, Min: new(0.0), Max: new(1.0)}, nil
	}},
	{"KWRankingWeigher", "", "kw_ranking_weight_multiplier", 1, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: &KWRankingWeigher{Efficiencies: p.Efficiencies}, Min: new(0.0)}, nil
	}},
	{"OvercommitWeigher", "", "overcommit_weight_multiplier", 0, func(Ports) (Weighted, error) {
		return Weighted{Weigher: OvercommitWeigher{}}, nil
	}},
	{"PreemptionCostWeigher", "", "preemption_cost_weight_multiplier", 1e5, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: PreemptionCostWeigher{Evictor: p.Evictor}}, nil
	}},
	{"PeriodWeigher", "", "period_weight_multiplier", 0, func(p Ports) (Weighted, error) {
		return Weighted{Weigher: PeriodWeigher{p.Period}}, nil
	}},
	{"PreemptibleCountWeigher", "", "preemptible_count_weight_multiplier", 0, func(Ports) (Weighted, error) {
		return Weighted{Weigher: PreemptibleCountWeigher{}}, nil
	}},
}

func novas(path, since, option string, multiplier float64, weighted func() Weighted) choice {
	return choice{
		"nova.scheduler.weights." + path, since, option + "_weight_multiplier", multiplier,
		func(Ports) (Weighted, error) { return weighted(), nil },
	}
}

func metrics(p Ports) (Weighted, error) {
	ratios, err := parseRatios("weight_setting of [metrics]", p.Nova.Metrics)
	if err == nil && p.Nova.Alone && len(ratios) > 0 {
		err = fault.Field("weight_classes", "has MetricsWeigher for what [metrics] weight_setting names, which Nova's API does not tell: "+
			"leave the one or the other out, or have such requests passed on ([scheduler] forward_transport_url)")
	}
	return Weighted{Weigher: MetricsWeigher{Ratios: ratios}}, err
}

func imageProperties(p Ports) (Weighted, error) {
	ratios, err := parseRatios("image_props_weight_setting", p.Nova.ImageProperties)
	return Weighted{Weigher: ImagePropertiesWeigher{Ratios: ratios}, OffAtZero: true}, err
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

// Choose gives the weighers that are named as in weight_classes, in the order of their
// names: Nova's by class or by its path, ours by name, or AllWeighers. What is named twice
// is there twice, and counts twice (nova/loadables.py get_matching_classes). multipliers
// has those that differ from the default, by option. It fails with an Invalid fault at a
// name or an option that is not known, at a weigher that the release of Nova has not got,
// at a multiplier that is no finite number, and at what Ports.Nova says is wrong.
func Choose(names []string, multipliers map[string]float64, ports Ports) ([]Weighted, error) {
	if err := check(multipliers); err != nil {
		return nil, err
	}
	var chosen []Weighted
	for _, name := range names {
		wanted, err := named(name, ports.Nova.Releases)
		if err != nil {
			return nil, err
		}
		for _, c := range wanted {
			w, err := c.make(ports)
			if err != nil {
				return nil, err
			}
			w.Option, w.Multiplier = c.option, c.multiplier
			if m, set := multipliers[c.option]; set {
				w.Multiplier = m
			}
			if w.OffAtZero && w.Multiplier != 0 && ports.Nova.Alone {
				return nil, fault.Field(c.option, "has %s count what Nova's API does not tell: it must be 0, or such requests "+
					"must be passed on ([scheduler] forward_transport_url)", w.Name())
			}
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}

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

// named gives the choices that a name stands for.
func named(name string, releases []string) ([]choice, error) {
	there := func(c choice) bool { return c.since == "" || slices.Contains(releases, c.since) }
	if name == AllWeighers {
		return slices.DeleteFunc(slices.Clone(choices), func(c choice) bool { return !there(c) }), nil
	}
	i := slices.IndexFunc(choices, func(c choice) bool { return name == c.name() || name == c.path })
	if i < 0 {
		return nil, fault.Field("weight_classes", "%s", unknown(name))
	}
	if !there(choices[i]) {
		return nil, fault.Field("weight_classes", "has %s, which Nova has since its release %s (nova_release)", name, choices[i].since)
	}
	return choices[i : i+1], nil
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
