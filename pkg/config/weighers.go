package config

import (
	"math"
	"strconv"
)

// Releases are the releases of Nova whose weighers are known, the oldest first, by their
// code names.
var Releases = []string{"zed", "antelope", "bobcat", "caracal", "dalmatian", "epoxy", "flamingo", "gazpacho"}

// Weighers are the options of section [filter_scheduler] about weighers, as Nova has
// them, and those of [metrics].
type Weighers struct {
	Classes []string // weight_classes
	Release string   // nova_release, one of Releases

	CPU, RAM, Disk, IOOps, BuildFailure                    float64 // multipliers
	PCI, SoftAffinity, SoftAntiAffinity                    float64
	CrossCell, HypervisorVersion, NumInstances, ImageProps float64
	FreeTime, KWRanking                                    float64
	Overcommit, PreemptionCost, Period, PreemptibleCount   float64
	ImagePropsSetting                                      []string // image_props_weight_setting, "name=ratio" each
	Metrics                                                float64  // [metrics] weight_multiplier
	MetricsSetting                                         []string // [metrics] weight_setting, "name=ratio" each
}

func weigherOptions(w *Weighers) []option {
	return []option{
		list(&w.Classes, "weight_classes", []string{"nova.scheduler.weights.all_weighers"},
			"Weighers that rank the hosts in mode replace, by the names of their classes; all_weighers are all there are. "+
				"One that is named twice counts twice, as in Nova."),
		choice(&w.Release, "nova_release", Releases[0], Releases,
			"Release of Nova beside which Almanac stands. It says which of Nova's weighers there are: HypervisorVersionWeigher "+
				"and NumInstancesWeigher since bobcat, ImagePropertiesWeigher since epoxy."),
		float(&w.CPU, "cpu_weight_multiplier", 1, "How much free VCPUs count."),
		float(&w.RAM, "ram_weight_multiplier", 1, "How much free memory counts."),
		float(&w.Disk, "disk_weight_multiplier", 1, "How much free disk counts."),
		float(&w.IOOps, "io_ops_weight_multiplier", -1, "How much heavy work of instances counts."),
		float(&w.BuildFailure, "build_failure_weight_multiplier", 1_000_000, "How much builds that have failed count against a host."),
		notNegative(&w.PCI, "pci_weight_multiplier", 1, "How much free PCI devices count against a host."),
		notNegative(&w.SoftAffinity, "soft_affinity_weight_multiplier", 1,
			"How much the members of a server group of policy soft-affinity on a host count for it."),
		notNegative(&w.SoftAntiAffinity, "soft_anti_affinity_weight_multiplier", 1,
			"How much the members of a server group of policy soft-anti-affinity on a host count against it."),
		float(&w.CrossCell, "cross_cell_move_weight_multiplier", 1_000_000,
			"How much it counts that a host is in the cell of an instance that may be moved to another."),
		float(&w.HypervisorVersion, "hypervisor_version_weight_multiplier", 1, "How much a new version of the hypervisor counts."),
		float(&w.NumInstances, "num_instances_weight_multiplier", 0, "How much the number of instances counts."),
		float(&w.ImageProps, "image_props_weight_multiplier", 0,
			"How much instances count that have properties of their images in common. Nova's API does not tell them: requests "+
				"for which they count are passed on."),
		list(&w.ImagePropsSetting, "image_props_weight_setting", nil,
			"Properties of images that count, as name=ratio. Empty means all, alike."),
		float(&w.FreeTime, "free_time_weight_multiplier", 10,
			"How much the time until the next reservation of a host counts, for instances without a reservation."),
		float(&w.KWRanking, "kw_ranking_weight_multiplier", 1, "How much FLOPS per watt count."),
		float(&w.Overcommit, "overcommit_weight_multiplier", 0,
			"How much it counts that an instance finds room on a host without others having to leave. Such hosts come first in any case."),
		float(&w.PreemptionCost, "preemption_cost_weight_multiplier", 100_000,
			"How much it counts against a host what it costs to make room there; see [preemptible] cost."),
		float(&w.Period, "period_weight_multiplier", 0,
			"How much it counts against a host what it would cost to take all of its preemptible instances away."),
		float(&w.PreemptibleCount, "preemptible_count_weight_multiplier", 0, "How much the number of preemptible instances counts against a host."),
	}
}

func metricsOptions(w *Weighers) []option {
	return []option{
		list(&w.MetricsSetting, "weight_setting", nil,
			"Metrics of hosts that count, as name=ratio. Nova's API does not tell them: with any, all requests are passed on."),
		float(&w.Metrics, "weight_multiplier", 1, "How much they count."),
	}
}

func notNegative(field *float64, name string, preset float64, help string) option {
	o := ranged(field, preset, 0, math.MaxFloat64, "a number",
		func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	o.name, o.help, o.kind, o.limits = name, help, "floating point value", o.limits[:1]
	return o
}
