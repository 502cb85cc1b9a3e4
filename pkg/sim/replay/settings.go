// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/sim/site"
	"github.com/almanac-cloud/almanac/pkg/workload"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Setting is a configuration of the service under which the traces are replayed. Times are seconds.
type Setting struct {
	Name   string
	Policy calendar.Policy
	// Patience is the longest wait of a job that has neither a start nor a deadline.
	Patience int64
	// DeadlineFactor replaces Patience unless it is 0: such a job waits at most this many times the
	// duration for which it is booked.
	DeadlineFactor float64
	Limits         planning.Limits
	Energy         Energy
}

// Energy is how a setting switches hosts off and on. Times are seconds.
type Energy struct {
	Mode energy.Mode // energy.ModeOff or energy.ModeAuto
	// MeasureInterval is the interval in which hosts are measured, PlanInterval the one in which
	// they are switched.
	MeasureInterval, PlanInterval int64
	Rules                         energy.Rules
	BootTime, ShutdownTime        int64
	// BootSpread is the standard deviation of the logarithm of boot times.
	BootSpread float64
	Forecaster string // one of energy.Forecasters
	Window     int64  // how far back moving_maximum looks
}

func (e *Energy) on() bool { return e.Mode == energy.ModeAuto }

// DefaultSetting returns a setting without a name: first fit, a week of patience, no limits, and
// all hosts on. If a setting turns switching on, the service's own defaults apply.
func DefaultSetting() Setting {
	service := config.Defaults().Energy
	return Setting{
		Policy: calendar.PolicyFirstFit, Patience: 7 * 24 * 3600,
		Energy: Energy{
			Mode: energy.ModeOff, Rules: service.PlanRules(), BootTime: 152, ShutdownTime: 6,
			MeasureInterval: service.MeasureEvery, PlanInterval: service.PlanEvery,
			Forecaster: service.ForecasterName, Window: service.ForecastWindow,
		},
	}
}

// DefaultSettings returns three of the policies with all hosts on, and first fit with idle hosts
// switched off: by the service's defaults, and by the rules of paper 004.
func DefaultSettings() (all []Setting) {
	for _, policy := range []calendar.Policy{calendar.PolicyFirstFit, calendar.PolicyPEWorstFit, calendar.PolicyDurationBestFit} {
		s := DefaultSetting()
		s.Name, s.Policy = string(policy), policy
		all = append(all, s)
	}
	s := DefaultSetting()
	s.Name, s.Energy.Mode = "first-fit, off by default", energy.ModeAuto
	all = append(all, s)
	s.Name, s.Energy.Rules = "first-fit, off as in 004", energy.Paper()
	return append(all, s)
}

// longestName is the largest number of letters in the name of a setting, so that it fits beside a
// figure.
const longestName = 40

// printable reports whether a text may occur in a report and in a message of one line.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// check returns an Invalid fault for the first field that is out of range; prefix precedes the
// names of fields.
func (s *Setting) check(prefix string) error {
	switch {
	case strings.TrimSpace(s.Name) == "" || len(s.Name) > longestName:
		return fault.Field(prefix+"name", "a name of 1 to %d letters is required", longestName)
	case !printable(s.Name):
		return fault.Field(prefix+"name", "%q has letters that cannot be printed", s.Name)
	case !slices.Contains(calendar.Policies, s.Policy):
		return fault.Field(prefix+"policy", "%s; the policies are %s", fault.Unknown("policy", string(s.Policy), calendar.Policies), strings.Join(fault.Texts(calendar.Policies), ", "))
	case s.Patience < 0 || s.Patience > longest:
		return fault.Field(prefix+"patience", "is %d s; it must be from 0 s to a year", s.Patience)
	case math.IsNaN(s.DeadlineFactor) || s.DeadlineFactor < 0 || s.DeadlineFactor > 1000:
		return fault.Field(prefix+"deadline_factor", "is %v; it must be from 0 to 1000", s.DeadlineFactor)
	case s.Limits.Duration < 0 || s.Limits.StartAhead < 0 || s.Limits.Hosts < 0 || s.Limits.HostSeconds < 0:
		return fault.Field(prefix+"limits", "a limit must not be negative; 0 is none")
	case s.Energy.Mode != energy.ModeOff && s.Energy.Mode != energy.ModeAuto:
		return fault.Field(prefix+"energy.mode", "is %q; it must be off or auto", s.Energy.Mode)
	}
	if err := s.Energy.check(prefix + "energy."); err != nil || !s.Energy.on() {
		return err
	}
	o := s.site(Options{})
	o.Hosts = sim.Hosts(1)
	return within(prefix+"energy.", o.Check())
}

// check returns an Invalid fault for what the configuration of the service does not accept. It uses
// the configuration's own checks.
func (e *Energy) check(prefix string) error {
	r, variables := &e.Rules, map[string]string{}
	for option, value := range map[string]int64{
		"measure_interval": e.MeasureInterval, "plan_interval": e.PlanInterval, "forecast_window": e.Window, "boot_time": e.BootTime,
		"horizon": r.Horizon, "idle_intervals": int64(r.IdleNeeded), "boot_margin": r.BootMargin,
		"spare_hosts": int64(r.SpareHosts), "spare_percent": int64(r.SparePercent), "min_on_time": r.MinOn, "min_off_time": r.MinOff,
		"max_off_per_cycle": int64(r.MostOff), "max_switches_per_day": int64(r.MostSwitches), "max_booting": int64(r.MostBooting),
	} {
		variables["OS_ENERGY__"+strings.ToUpper(option)] = strconv.FormatInt(value, 10)
	}
	_, err := config.Load(nil, nil, variables)
	if err == nil {
		return nil
	}
	refused := *fault.Of(err)
	refused.Field = prefix + strings.TrimPrefix(refused.Field, "[energy] ")
	return &refused
}

// meets returns an Invalid fault for what a machine with that many hosts cannot meet.
func (s *Setting) meets(prefix string, hosts int) error {
	if s.Energy.on() && s.Energy.Rules.SpareHosts > hosts {
		return fault.Field(prefix+"energy.spare_hosts", "%d hosts cannot be spare of %d", s.Energy.Rules.SpareHosts, hosts)
	}
	return nil
}

// settingNames maps fields of package site and of the forecasters to the names in a setting.
var settingNames = map[string]string{"boot": "boot_time", "shutdown": "shutdown_time"}

// within puts a prefix before the field that a fault names.
func within(prefix string, err error) error {
	if err == nil {
		return nil
	}
	f := *fault.Of(err)
	if name, known := settingNames[f.Field]; known {
		f.Field = name
	}
	f.Field = prefix + f.Field
	return &f
}

// site returns the options of the cloud that the setting describes, without hosts.
func (s *Setting) site(o Options) site.Options {
	e := &s.Energy
	made := site.Options{
		Booking:  s.booking(),
		Machines: site.Machines{Shutdown: e.ShutdownTime, Boot: e.BootTime, Spread: e.BootSpread, Draw: o.Draw},
		Seed:     o.Seed,
	}
	if e.on() {
		power := site.Paper(e.BootTime)
		power.Rules = e.Rules
		power.MeasureEvery, power.PlanEvery = e.MeasureInterval, e.PlanInterval
		power.Forecaster, power.Window = e.Forecaster, e.Window
		made.Power = &power
	}
	return made
}

func (s *Setting) booking() sim.BookingOptions {
	return sim.BookingOptions{Limits: s.Limits, Defaults: planning.Defaults{Policy: s.Policy, OnEnd: reservation.OnEndDelete}}
}

// waits returns the longest wait, in seconds, of a job that is booked for booked seconds.
func (s *Setting) waits(j *workload.Job, booked int64) int64 {
	if s.DeadlineFactor == 0 {
		return s.Patience
	}
	return int64(math.Min(longest, s.DeadlineFactor*float64(booked)))
}

// describe describes the setting in words.
func (s *Setting) describe() string {
	text := fmt.Sprintf("policy %s; a job without a start or deadline of its own waits at most %s", s.Policy, lasting(s.Patience))
	if s.DeadlineFactor > 0 {
		text = fmt.Sprintf("policy %s; a job without a start or deadline of its own waits at most %g times as long as it is booked for", s.Policy, s.DeadlineFactor)
	}
	l := &s.Limits
	for _, limit := range []struct {
		is   bool
		text string
	}{
		{l.Duration > 0, "at most " + lasting(l.Duration) + " long"},
		{l.StartAhead > 0, "at most " + lasting(l.StartAhead) + " ahead"},
		{l.Hosts > 0, fmt.Sprintf("at most %d hosts held by a user at once", l.Hosts)},
		{l.HostSeconds > 0, fmt.Sprintf("at most %.4g host-hours held by a user at once", float64(l.HostSeconds)/3600)},
	} {
		if limit.is {
			text += "; " + limit.text
		}
	}
	e := &s.Energy
	if !e.on() {
		return text + "; all hosts stay on"
	}
	text += fmt.Sprintf("; hosts are switched off that were idle at %d measurements, one each %s, and that nobody needs; forecaster %s, horizon %s, boot %s (spread %g) with a margin of %s, shutdown %s",
		e.Rules.IdleNeeded, lasting(e.MeasureInterval), e.Forecaster, lasting(e.Rules.Horizon), lasting(e.BootTime), e.BootSpread, lasting(e.Rules.BootMargin), lasting(e.ShutdownTime))
	for _, limit := range []struct {
		is   bool
		text string
	}{
		{e.Rules.SpareHosts > 0 || e.Rules.SparePercent > 0, fmt.Sprintf("%d spare hosts or %d %%, what is more", e.Rules.SpareHosts, e.Rules.SparePercent)},
		{e.Rules.MinOn > 0, "on for at least " + lasting(e.Rules.MinOn)},
		{e.Rules.MinOff > 0, "off for at least " + lasting(e.Rules.MinOff)},
		{e.Rules.MostOff > 0, fmt.Sprintf("at most %d switched off by a plan, and one plan each %s", e.Rules.MostOff, lasting(e.PlanInterval))},
		{e.Rules.MostSwitches > 0, fmt.Sprintf("each switched at most %d times a day", e.Rules.MostSwitches)},
		{e.Rules.MostBooting > 0, fmt.Sprintf("at most %d booting at once", e.Rules.MostBooting)},
	} {
		if limit.is {
			text += "; " + limit.text
		}
	}
	return text
}

// lasting formats seconds in a readable unit: "7 d", "1.5 h", "90 s".
func lasting(seconds int64) string {
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{24 * 3600, "d"}, {3600, "h"}, {60, "min"}} {
		if seconds >= 2*unit.seconds || seconds == unit.seconds {
			return fmt.Sprintf("%.4g %s", float64(seconds)/float64(unit.seconds), unit.name)
		}
	}
	return fmt.Sprintf("%d s", seconds)
}
