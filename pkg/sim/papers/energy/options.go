// SPDX-License-Identifier: Apache-2.0

// Package energy repeats the evaluation of Rossigneux, Lefèvre and Assunção, "A Resource
// Reservation System to Improve the Support for HPC Applications in OpenStack" (paper 004), with
// the booking service and energy controller (pkg/sim/site): the savings of switching idle hosts
// off, the wait of requests for hosts to boot, and how both change if a share of the requests is
// known ahead.
package energy

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
)

// Options describe the simulation. Times are seconds unless another unit is named.
type Options struct {
	Seed uint64
	Runs int // of each setting, with other random numbers

	// Trace is a file of jobs or reservations (see workload.Open). If it is empty, the
	// Lublin-Feitelson model generates jobs for a machine of Processors, with a mean of PerDay a
	// day.
	Trace        string
	ProcsPerHost int // for a trace that counts processors
	Processors   int
	PerDay       float64
	// From is the first simulated day of the workload, and Days the number of simulated days; 0
	// means all days of a trace.
	From, Days int

	// Hours are the working hours of the adaptation, on a clock that is Zone hours east of UTC.
	Hours Hours
	Zone  int
	// Safety is the number of additional hosts, as a share of the most that are ever used at once.
	Safety float64
	// Ahead bounds how many seconds before its start a request is submitted that is known ahead
	// although it is no reservation in the workload. The distribution is uniform.
	Ahead Range

	// Base is the setting from which one factor at a time varies; Sweeps are the factors that vary,
	// of Factors.
	Base   Setting
	Sweeps []string
	// Rules are the rules of the switch plan, except for what the setting determines.
	Rules energy.Rules
	// Machines describes the hosts' machines, except for the boot time, which the setting
	// determines. BootWatts is the power of a machine while it boots.
	Machines  site.Machines
	BootWatts float64
}

// Hours is the part of a day from the hour From until the hour To, each from 0 to 24.
type Hours struct{ From, To int }

// Range is the range from Least to Most, both included.
type Range struct{ Least, Most int64 }

// Setting holds the parameters of a run; each sweep varies one of them.
type Setting struct {
	Share      float64 // of the requests that are known ahead
	Horizon    int64   // how far ahead reservations are committed
	Idle       int     // measurements, one a minute, that a host must be idle for
	Boot       int64   // the median boot time
	Forecaster string
}

// The parameters of a Setting that can vary.
const (
	Share      = "share"
	Horizon    = "horizon"
	Idleness   = "idleness"
	Boot       = "boot"
	Forecaster = "forecaster"
)

// Factors lists the parameters that can vary.
var Factors = []string{Share, Horizon, Idleness, Boot, Forecaster}

// Defaults returns the paper's set-up where the paper states it: idleness, horizon, intervals and
// working hours. The power of a host is that of the example of Batsim
// (platforms/cluster_energy_128.xml): off 9.75 W, idle 95 W, full 190.738 W, a boot of 151.52 s at
// 125.174 W, a shutdown of 6.1 s at 100.997 W. Everything else is an assumption.
func Defaults() Options {
	return Options{
		Seed: 1, Runs: 5, ProcsPerHost: 1, Processors: 16, PerDay: 100, Days: 7,
		Hours: Hours{9, 18}, Zone: 1, Safety: 0.1, Ahead: Range{3600, 48 * 3600},
		Base:   Setting{Share: 0.75, Horizon: 15 * 60, Idle: 5, Boot: 152, Forecaster: "last_value"},
		Sweeps: slices.Clone(Factors), Rules: energy.Paper(),
		Machines:  site.Machines{Shutdown: 6, Spread: 0.2, Crowding: 0.002, Draw: energy.Draw{Idle: 95, Full: 190.738, Off: 9.75}},
		BootWatts: 125.174,
	}
}

// The limits of the options: the requests of a run are kept in memory.
const (
	mostRuns = 1000
	mostDays = 3660
	mostSize = 1 << 16
	mostRate = 1e6
	hour     = int64(3600)
	day      = 24 * hour
)

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	err := cmp.Or(
		fault.Within("runs", o.Runs, 1, mostRuns), fault.Within("procs_per_host", o.ProcsPerHost, 1, mostSize), fault.Within("from", o.From, 0, mostDays),
		fault.Within("days", o.Days, 0, mostDays), o.checkWorkload(), o.checkAdaptation(), o.checkSweeps(),
	)
	if err != nil {
		return err
	}
	for _, s := range o.settings() {
		made := o.siteOptions(s.Setting)
		if err := cmp.Or(fault.Within("share", s.Share, 0, 1), made.Check()); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) checkWorkload() error {
	if o.Trace != "" {
		return nil
	}
	switch {
	case o.Processors < 8 || o.Processors > mostSize:
		return fault.Field("processors", "is %d; jobs can be generated for 8 to %d", o.Processors, mostSize)
	case !(o.PerDay >= 1 && o.PerDay <= mostRate):
		return fault.Field("per_day", "is %v; it must be from 1 to %v", o.PerDay, mostRate)
	case o.Days == 0:
		return fault.Field("days", "is required without a trace")
	}
	return nil
}

func (o *Options) checkAdaptation() error {
	switch {
	case o.Hours.From < 0 || o.Hours.To > 24 || o.Hours.From > o.Hours.To:
		return fault.Field("working_hours", "must be from 0 to 24, the first not after the last")
	case o.Zone < -12 || o.Zone > 14:
		return fault.Field("zone", "must be from -12 to 14 hours east of UTC")
	case !(o.Safety >= 0 && o.Safety <= 100):
		return fault.Field("safety", "is %v; it must be from 0 to 100", o.Safety)
	case o.Ahead.Least < 0 || o.Ahead.Most < o.Ahead.Least || o.Ahead.Most > 366*day:
		return fault.Field("ahead", "must be from 0 s to a year, the least not more than the most")
	case !(o.BootWatts >= 0) || math.IsInf(o.BootWatts, 1):
		return fault.Field("boot_watts", "must be a number that is not negative")
	}
	return nil
}

func (o *Options) checkSweeps() error {
	for _, factor := range o.Sweeps {
		if !slices.Contains(Factors, factor) {
			return fault.Field("sweeps", "%s", fault.Unknown("factor", factor, Factors))
		}
	}
	return nil
}

// siteOptions returns the options of a site with one host; the caller sets the number of hosts that
// the workload requires.
func (o *Options) siteOptions(s Setting) site.Options {
	rules := o.Rules
	rules.Horizon, rules.IdleNeeded = s.Horizon, s.Idle
	power := site.Paper(s.Boot)
	power.Rules, power.Forecaster = rules, s.Forecaster
	machines := o.Machines
	machines.Boot = s.Boot
	machines.Draw.BootJoules = o.BootWatts * float64(machines.Shutdown+machines.Boot)
	return site.Options{Hosts: sim.Hosts(1), Machines: machines, Power: &power}
}
