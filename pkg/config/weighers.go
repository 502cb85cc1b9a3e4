// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"

	"github.com/almanac-cloud/almanac/weighers"
)

// Weighers are the options of section [filter_scheduler] for weighers, named as in Nova,
// and those of section [metrics].
type Weighers struct {
	Classes     []string           // weight_classes
	Multipliers map[string]float64 // as weighers.Multipliers
	Nova        weighers.Nova      // Alone follows from other options
}

// weight returns the option for a multiplier, which is at least least; name is its name in package
// weighers.
func (w *Weighers) weight(name string, least float64, help string) option {
	at := place[float64]{func() float64 { return w.Multipliers[name] }, func(v float64) {
		if w.Multipliers == nil {
			w.Multipliers = map[string]float64{}
		}
		w.Multipliers[name] = v
	}}
	return number(at, name, weighers.Multipliers()[name], least, math.MaxFloat64, help)
}

func weigherOptions(w *Weighers) []option {
	const anyNumber = -math.MaxFloat64
	return []option{
		list(&w.Classes, "weight_classes", []string{weighers.AllWeighers},
			"Weighers that rank the hosts in mode replace, by class name; all_weighers stands for all of them. "+
				"HypervisorVersionWeigher and NumInstancesWeigher count beside Nova 28 (bobcat) and later, ImagePropertiesWeigher beside Nova 31 "+
				"(epoxy) and later. A weigher that is listed twice counts twice, as in Nova."),
		w.weight("cpu_weight_multiplier", anyNumber, "Multiplier for free VCPUs."),
		w.weight("ram_weight_multiplier", anyNumber, "Multiplier for free memory."),
		w.weight("disk_weight_multiplier", anyNumber, "Multiplier for free disk."),
		w.weight("io_ops_weight_multiplier", anyNumber, "Multiplier for the number of instances in I/O-intensive states."),
		w.weight("build_failure_weight_multiplier", anyNumber, "Multiplier for failed builds, which count against a host."),
		w.weight("pci_weight_multiplier", 0, "Multiplier for free PCI devices, which count against a host."),
		w.weight("soft_affinity_weight_multiplier", 0,
			"Multiplier for members of the instance's soft-affinity server group on a host."),
		w.weight("soft_anti_affinity_weight_multiplier", 0,
			"Multiplier for members of the instance's soft-anti-affinity server group, which count against a host."),
		w.weight("cross_cell_move_weight_multiplier", anyNumber,
			"Multiplier for hosts in the current cell of an instance that moves and may change cells."),
		w.weight("hypervisor_version_weight_multiplier", anyNumber, "Multiplier for the version of the hypervisor."),
		w.weight("num_instances_weight_multiplier", anyNumber, "Multiplier for the number of instances."),
		w.weight("image_props_weight_multiplier", anyNumber,
			"Multiplier for instances on a host whose images have the same properties. Nova's API does not report these properties: "+
				"Almanac forwards requests that depend on them."),
		list(&w.Nova.ImageProperties, "image_props_weight_setting", nil,
			"Image properties that count, as name=ratio. Empty means all properties with equal weight."),
		w.weight("free_time_weight_multiplier", anyNumber,
			"Multiplier for the time until the next reservation of a host, for instances without a reservation."),
		w.weight("kw_ranking_weight_multiplier", anyNumber, "Multiplier for FLOPS per watt."),
		w.weight("overcommit_weight_multiplier", anyNumber,
			"Multiplier for the preference of hosts that need no preemption. 0 is enough: such hosts precede the others whatever their weights."),
		w.weight("preemption_cost_weight_multiplier", anyNumber,
			"Multiplier for the cost of preemption on a host, which counts against it; see [preemptible] victim_cost."),
		w.weight("period_weight_multiplier", anyNumber,
			"Multiplier for the cost of preempting all preemptible instances of a host, which counts against it."),
		w.weight("preemptible_count_weight_multiplier", anyNumber, "Multiplier for the number of preemptible instances, which count against a host."),
	}
}

func metricsOptions(w *Weighers) []option {
	multiplier := w.weight("metrics_weight_multiplier", -math.MaxFloat64, "Multiplier for the metrics.")
	multiplier.name = "weight_multiplier"
	return []option{
		list(&w.Nova.Metrics, "weight_setting", nil,
			"Host metrics that count, as name=ratio. Nova's API does not report metrics: if this is set, Almanac forwards all requests."),
		multiplier,
	}
}
