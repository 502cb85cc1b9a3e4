// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// Packing is section [packing]: how instances are moved to raise the smallest yield or to
// empty hosts (paper 002).
type Packing struct {
	CPUNeed  string            // one of rebalance.Needs
	Preset   rebalance.Options // of requests
	Yield    filters.Yield
	Executor rebalance.ExecutorOptions
}

func packingOptions(p *Packing) []option {
	return []option{
		choice(&p.CPUNeed, "cpu_need", rebalance.OfFlavor, rebalance.Needs,
			"Source of the CPU need of instances. flavor: cpu_share of the vCPUs of the flavor. diagnostics: the use measured by "+
				"Nova's server diagnostics, one call per instance; instances without diagnostics use their flavor."),
		number(in(&p.Yield.Share), "cpu_share", 1, 0, 1,
			"Assumed fraction of its flavor's vCPUs that an instance needs; more than 0."),
		integer(&p.Preset.Migrations, "max_migrations", 10, 0, 100_000,
			"Maximum number of migrations per plan, unless the request sets one. 0 means no limit."),
		integer(&p.Preset.MemoryMB, "max_migrated_memory_mb", 0, 0, 1_000_000_000,
			"Maximum memory in MB that a plan moves, unless the request sets one. 0 means no limit."),
		number(in(&p.Preset.Gain), "min_gain", 0.01, 0, 1,
			"Minimum increase of the smallest yield; with less, nothing is moved."),
		number(in(&p.Yield.Floor), "min_yield_floor", 0, 0, 1,
			"A host on which the instance would lower the smallest yield below this fails the YieldFilter. 0 disables the filter. "+
				"Requires [scheduler] mode = replace."),
		duration(&p.Executor.Timeout, "move_timeout", 10*time.Minute, time.Second, day,
			"Time limit for a live migration. After it, Almanac asks Nova to abort the migration."),
		integer(&p.Executor.MostFailed, "max_failures", 3, 0, 100_000,
			"Number of failed moves after which a run stops. 0 means no limit."),
		duration(&p.Executor.Every, "poll_interval", 2*time.Second, time.Second, time.Minute,
			"How often Almanac checks a run in progress."),
	}
}
