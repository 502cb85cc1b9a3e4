package config

// Weighers are the options of section [filter_scheduler] about weighers, as Nova has them.
type Weighers struct {
	Classes []string // weight_classes

	CPU, RAM, Disk, IOOps, BuildFailure float64 // multipliers
	FreeTime, KWRanking                 float64
}

func weigherOptions(w *Weighers) []option {
	return []option{
		list(&w.Classes, "weight_classes", []string{"nova.scheduler.weights.all_weighers"},
			"Weighers that rank the hosts in mode replace, by the names of their classes; all_weighers are all there are."),
		float(&w.CPU, "cpu_weight_multiplier", 1, "How much free VCPUs count."),
		float(&w.RAM, "ram_weight_multiplier", 1, "How much free memory counts."),
		float(&w.Disk, "disk_weight_multiplier", 1, "How much free disk counts."),
		float(&w.IOOps, "io_ops_weight_multiplier", -1, "How much heavy work of instances counts."),
		float(&w.BuildFailure, "build_failure_weight_multiplier", 1_000_000, "How much builds that have failed count against a host."),
		float(&w.FreeTime, "free_time_weight_multiplier", 10,
			"How much the time until the next reservation of a host counts, for instances without a reservation."),
		float(&w.KWRanking, "kw_ranking_weight_multiplier", 1, "How much FLOPS per watt count."),
	}
}
