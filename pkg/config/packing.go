package config

import (
	"strconv"
	"time"

	"github.com/almanac-cloud/almanac/pkg/rebalance"
)

// Packing is section [packing]: how instances are moved to raise the smallest yield or to
// empty hosts (paper 002).
type Packing struct {
	CPUNeed    string // one of rebalance.Needs
	CPUShare   float64
	Migrations int // 0: no limit
	MemoryMB   int // 0: no limit
	MinGain    float64
	YieldFloor float64 // 0: none

	MoveTimeout  time.Duration
	MaxFailures  int // 0: no limit
	PollInterval time.Duration
}

func packingOptions(p *Packing) []option {
	return []option{
		choice(&p.CPUNeed, "cpu_need", rebalance.OfFlavor, rebalance.Needs,
			"Source of the CPU need of instances. flavor: cpu_share of the vCPUs of the flavor. diagnostics: the use measured by "+
				"Nova's server diagnostics, one call per instance; instances without diagnostics use their flavor."),
		fraction(&p.CPUShare, "cpu_share", 1,
			"Assumed fraction of its flavor's vCPUs that an instance needs; more than 0."),
		integer(&p.Migrations, "migrations", 10, 0, 100_000,
			"Maximum number of migrations per plan, unless the request sets one. 0 means no limit."),
		integer(&p.MemoryMB, "memory_mb", 0, 0, 1_000_000_000,
			"Maximum memory in MB that a plan moves, unless the request sets one. 0 means no limit."),
		fraction(&p.MinGain, "min_gain", 0.01,
			"Minimum increase of the smallest yield; with less, nothing is moved."),
		fraction(&p.YieldFloor, "min_yield_floor", 0,
			"A host on which the instance would lower the smallest yield below this fails the YieldFilter. 0 disables the filter. "+
				"Requires [scheduler] mode = replace."),
		duration(&p.MoveTimeout, "move_timeout", 10*time.Minute, time.Second, day,
			"Time limit for a live migration. After it, Almanac asks Nova to abort the migration."),
		integer(&p.MaxFailures, "max_failures", 3, 0, 100_000,
			"Number of failed moves after which a run stops. 0 means no limit."),
		duration(&p.PollInterval, "poll_interval", 2*time.Second, time.Second, time.Minute,
			"How often Almanac checks a run in progress."),
	}
}

// fraction returns an option for a number from 0 to 1.
func fraction(field *float64, name string, preset float64, help string) option {
	o := ranged(field, preset, 0, 1, "a number",
		func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	o.name, o.help, o.kind = name, help, "floating point value"
	return o
}
