package config

import (
	"math"
	"strconv"

	"github.com/almanac-cloud/almanac/weighers"
)

// Weighers are the options of section [filter_scheduler] for weighers, named as in Nova,
// and those of section [metrics].
type Weighers struct {
	Classes []string // weight_classes
	Release string   // nova_release, one of weighers.Releases

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
		list(&w.Classes, "weight_classes", []string{weighers.AllWeighers},
			"Weighers that rank the hosts in mode replace, by class name; all_weighers stands for all of them. "+
				"A weigher that is listed twice counts twice, as in Nova."),
		choice(&w.Release, "nova_release", weighers.Releases[0], weighers.Releases,
			"Release of the cloud's Nova. It determines which of Nova's weighers exist: HypervisorVersionWeigher and "+
				"NumInstancesWeigher since bobcat, ImagePropertiesWeigher since epoxy."),
		float(&w.CPU, "cpu_weight_multiplier", 1, "Multiplier for free VCPUs."),
		float(&w.RAM, "ram_weight_multiplier", 1, "Multiplier for free memory."),
		float(&w.Disk, "disk_weight_multiplier", 1, "Multiplier for free disk."),
		float(&w.IOOps, "io_ops_weight_multiplier", -1, "Multiplier for the number of instances in I/O-intensive states."),
		float(&w.BuildFailure, "build_failure_weight_multiplier", 1_000_000, "Multiplier for failed builds, which count against a host."),
		notNegative(&w.PCI, "pci_weight_multiplier", 1, "Multiplier for free PCI devices, which count against a host."),
		notNegative(&w.SoftAffinity, "soft_affinity_weight_multiplier", 1,
			"Multiplier for members of the instance's soft-affinity server group on a host."),
		notNegative(&w.SoftAntiAffinity, "soft_anti_affinity_weight_multiplier", 1,
			"Multiplier for members of the instance's soft-anti-affinity server group, which count against a host."),
		float(&w.CrossCell, "cross_cell_move_weight_multiplier", 1_000_000,
			"Multiplier for hosts in the current cell of an instance that moves and may change cells."),
		float(&w.HypervisorVersion, "hypervisor_version_weight_multiplier", 1, "Multiplier for the version of the hypervisor."),
		float(&w.NumInstances, "num_instances_weight_multiplier", 0, "Multiplier for the number of instances."),
		float(&w.ImageProps, "image_props_weight_multiplier", 0,
			"Multiplier for instances on a host whose images have the same properties. Nova's API does not report these properties: "+
				"Almanac forwards requests that depend on them."),
		list(&w.ImagePropsSetting, "image_props_weight_setting", nil,
			"Image properties that count, as name=ratio. Empty means all properties with equal weight."),
		float(&w.FreeTime, "free_time_weight_multiplier", 10,
			"Multiplier for the time until the next reservation of a host, for instances without a reservation."),
		float(&w.KWRanking, "kw_ranking_weight_multiplier", 1, "Multiplier for FLOPS per watt."),
		float(&w.Overcommit, "overcommit_weight_multiplier", 0,
			"Multiplier for hosts that need no preemption. Such hosts come first in any case."),
		float(&w.PreemptionCost, "preemption_cost_weight_multiplier", 100_000,
			"Multiplier for the cost of preemption on a host, which counts against it; see [preemptible] cost."),
		float(&w.Period, "period_weight_multiplier", 0,
			"Multiplier for the cost of preempting all preemptible instances of a host, which counts against it."),
		float(&w.PreemptibleCount, "preemptible_count_weight_multiplier", 0, "Multiplier for the number of preemptible instances, which count against a host."),
	}
}

func metricsOptions(w *Weighers) []option {
	return []option{
		list(&w.MetricsSetting, "weight_setting", nil,
			"Host metrics that count, as name=ratio. Nova's API does not report metrics: if this is set, Almanac forwards all requests."),
		float(&w.Metrics, "weight_multiplier", 1, "Multiplier for the metrics."),
	}
}

// notNegative returns an option for a number of at least 0.
func notNegative(field *float64, name string, preset float64, help string) option {
	o := ranged(field, preset, 0, math.MaxFloat64, "a number",
		func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	o.name, o.help, o.kind, o.limits = name, help, "floating point value", o.limits[:1]
	return o
}
