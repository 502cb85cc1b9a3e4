package config

import (
	"strconv"
	"time"
)

// Packing is section [packing]: how instances are moved for a larger smallest yield, or to
// empty hosts (paper 002).
type Packing struct {
	CPUNeed    string // "flavor" or "diagnostics"
	CPUShare   float64
	Migrations int // 0: any number
	MemoryMB   int // 0: any
	MinGain    float64
	YieldFloor float64 // 0: none

	MoveTimeout  time.Duration
	MaxFailures  int // 0: any number
	PollInterval time.Duration
}

func packingOptions(p *Packing) []option {
	return []option{
		choice(&p.CPUNeed, "cpu_need", "flavor", []string{"flavor", "diagnostics"},
			"How much CPU instances are taken to need. flavor: cpu_share of the vCPUs of their flavors. diagnostics: what they were "+
				"measured to use, by Nova's diagnostics, which is one call for each instance; those of which Nova does not tell it have "+
				"that of their flavor."),
		fraction(&p.CPUShare, "cpu_share", 1,
			"Which fraction of the vCPUs of its flavor an instance is taken to need; more than 0."),
		integer(&p.Migrations, "migrations", 10, 0, 100_000,
			"How many migrations a plan may take where the request does not say. 0 means any number."),
		integer(&p.MemoryMB, "memory_mb", 0, 0, 1_000_000_000,
			"How much memory, in MB, a plan may move where the request does not say. 0 means any."),
		fraction(&p.MinGain, "min_gain", 0.01,
			"By how much the smallest yield has to grow at least, or nothing is moved."),
		fraction(&p.YieldFloor, "min_yield_floor", 0,
			"An instance is refused by hosts on which the smallest yield would be under this with it: reason YieldFilter. 0 means "+
				"none are. It takes [scheduler] mode = replace."),
		duration(&p.MoveTimeout, "move_timeout", 10*time.Minute, time.Second, day,
			"How long a live migration may take. Then Nova is told to give it up."),
		integer(&p.MaxFailures, "max_failures", 3, 0, 100_000,
			"After how many moves that fail a run is given up. 0 means any number."),
		duration(&p.PollInterval, "poll_interval", 2*time.Second, time.Second, time.Minute,
			"How often it is looked at a run that is under way."),
	}
}

// fraction gives an option for a number from 0 to 1.
func fraction(field *float64, name string, preset float64, help string) option {
	o := ranged(field, preset, 0, 1, "a number",
		func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(raw string) (float64, error) { return strconv.ParseFloat(raw, 64) })
	o.name, o.help, o.kind = name, help, "floating point value"
	return o
}
