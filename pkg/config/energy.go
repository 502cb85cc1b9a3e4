// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Energy is section [energy]: which hosts are switched off and on, and when.
type Energy struct {
	// Options are those of the controller. With Paper, their Rules and WakeTest do not apply.
	controller.Options
	Paper    bool // the rules of the evaluation in the energy paper apply
	StopFile string

	EfficiencyFile       string
	ForecasterName       string // one of energy.Forecasters
	ForecastWindow       int64  // seconds
	AuditTime            int64  // seconds
	AgentTimeout         time.Duration
	WattsURL, WattsQuery string
}

// PlanRules returns the rules of the switch plan.
func (e Energy) PlanRules() energy.Rules {
	if e.Paper {
		return energy.Paper()
	}
	return e.Rules
}

func energyOptions(e *Energy) []option {
	return slices.Concat(
		[]option{
			choice(&e.Mode, "mode", energy.ModeOff, energy.Modes,
				"How Almanac treats idle hosts until an admin changes the mode. off: it ignores them. observe: it counts them and "+
					"forecasts demand. recommend: it also makes plans and carries out those that an admin approves. auto: it carries "+
					"out its plans. In all modes a reservation wakes the sleeping hosts that it needs."),
			named(&e.Paper, "rules", false, []word[bool]{{"safe", false}, {"paper", true}},
				"safe: apply the limits below. paper: ignore them, as in the evaluation of the energy paper; for trials only."),
			text(&e.StopFile, "stop_file", "",
				"While this file exists, Almanac switches no host off; it still wakes hosts."),
		},
		energyHostOptions(e), energyPlanOptions(e), energyLimitOptions(e), energySwitchOptions(e),
	)
}

func energyHostOptions(e *Energy) []option {
	return []option{
		list(&e.Admission.Aggregates, "aggregates", nil, "Host aggregates whose hosts Almanac may switch off."),
		list(&e.Admission.Traits, "traits", nil, "Traits whose hosts Almanac may switch off."),
		text(&e.Admission.Property, "property", "energy_managed",
			"Host property that overrides aggregates and traits: true allows Almanac to switch the host off, false forbids it."),
		text(&e.EfficiencyFile, "efficiency_file", "",
			"CSV file with the power figures of the hosts, with the columns host, flops_per_watt, idle_watts, full_watts, standby_watts, "+
				"off_watts and boot_joules; a host may be a pattern such as node-*."),
		text(&e.WattsURL, "prometheus_url", "", "URL of a Prometheus server that supplies the watts of hosts whose machines do not report them."),
		text(&e.WattsQuery, "watts_query", "",
			"PromQL query for the watts of a host; {host} stands for the host's name."),
	}
}

func energyPlanOptions(e *Energy) []option {
	return []option{
		duration(&e.MeasureEvery, "measure_interval", time.Minute, time.Second, time.Hour, "How often Almanac checks which hosts are idle."),
		duration(&e.PlanEvery, "plan_interval", 5*time.Minute, time.Second, day, "How often Almanac plans which hosts to switch."),
		duration(&e.StepEvery, "step_interval", 5*time.Second, time.Second, time.Minute,
			"How often Almanac checks the hosts that are being switched and the reservations that need hosts."),
		duration(&e.Rules.Horizon, "horizon", 15*time.Minute, 0, day,
			"How long before the start of a reservation its hosts are awake; longer if they boot slowly."),
		integer(&e.Rules.IdleNeeded, "idle_intervals", 30, 1, 100_000,
			"Number of consecutive measurements in which a host must be idle before Almanac switches it off."),
		choice(&e.ForecasterName, "forecaster", energy.DefaultForecaster, energy.Forecasters,
			"Forecaster for the number of hosts in use. "+energy.DefaultForecaster+" does best on recorded reservations (docs/energy-forecast.md)."),
		duration(&e.ForecastWindow, "forecast_window", time.Hour, time.Minute, 30*day, "Look-back window of the forecaster moving_maximum."),
		duration(&e.Keep, "history_time", 35*day, day, 10*365*day, "How long the measured demand, the input of the forecasts, is kept."),
		duration(&e.AuditTime, "audit_time", 365*day, day, longest, "How long the audit log is kept: who switched which host, when and why."),
	}
}

func energyLimitOptions(e *Energy) []option {
	r := &e.Rules
	return []option{
		integer(&r.SpareHosts, "spare_hosts", 1, 0, 1_000_000, "Number of idle hosts that stay on in addition to the hosts in demand."),
		integer(&r.SparePercent, "spare_percent", 10, 0, 100, "Percentage of all hosts that stays on and idle in addition to the hosts in demand. If spare_hosts is larger, that number counts."),
		capacity(&r.SpareCapacity, "spare_capacity",
			"Idle capacity that stays on in addition to the demand, such as VCPU:64, MEMORY_MB:262144, CUSTOM_GPU:2. It applies together with spare_hosts and spare_percent."),
		subset(&r.KeepLast, "keep_last", energy.Groups, energy.Groups,
			"At least one host of each zone, aggregate and custom trait stays on; allowed are "+strings.Join(fault.Texts(energy.Groups), ", ")+"."),
		duration(&r.MinOn, "min_on_time", 30*time.Minute, 0, 30*day, "Minimum time that a host stays on after it was switched on."),
		duration(&r.MinOff, "min_off_time", 15*time.Minute, 0, 30*day, "Minimum time that a host stays off, unless a reservation needs it."),
		integer(&r.MostOff, "max_off_per_cycle", 1, 0, 1_000_000, "Maximum number of hosts that one plan switches off. 0 means no limit."),
		integer(&r.MostSwitches, "max_switches_per_day", 6, 0, 10_000,
			"Maximum number of times per day that a host is switched off or on, not counting reservations. 0 means no limit."),
		integer(&r.MostBooting, "max_booting", 5, 0, 1_000_000,
			"Maximum number of hosts that boot at the same time, except for reservations that would otherwise start late. 0 means no limit."),
		boolean(&e.WakeTest, "wake_test_required", true,
			"Switch a host off only after it has passed a wake test (almanac energy host test)."),
		integer(&e.MostFailed, "max_failed_boots", 3, 0, 10_000,
			"After this many consecutive failed boots, Almanac switches no host off until an admin resets it. 0 means no limit."),
	}
}

func energySwitchOptions(e *Energy) []option {
	s := &e.Switching
	return []option{
		duration(&s.Settle, "drain_time", time.Minute, 0, time.Hour,
			"How long a host is closed to new instances before Almanac checks it again and switches it off."),
		duration(&s.OffPatience, "soft_off_timeout", 5*time.Minute, time.Second, time.Hour,
			"Time limit for the operating system of a host to shut down."),
		boolean(&s.Hard, "hard_off", false,
			"Cut the power of a host that does not shut down in time, or that hangs while booting."),
		duration(&e.BootTime, "boot_time", 10*time.Minute, time.Second, day, "Assumed boot time of a host until one has been measured."),
		duration(&e.Rules.BootMargin, "boot_margin", 2*time.Minute, 0, day, "Additional time with which a host is woken before a reservation needs it."),
		duration(&s.BootTimeout, "boot_timeout", 20*time.Minute, time.Second, day, "Time after which a boot counts as failed."),
		integer(&s.Retries, "boot_retries", 2, 0, 100, "How often a failed boot is retried."),
		duration(&s.Backoff, "boot_backoff", 30*time.Second, 0, time.Hour, "Wait before the first boot retry; doubles each time."),
		duration(&s.Probe, "probe_interval", time.Hour, time.Minute, 30*day, "How often Almanac tries again to wake a host that did not wake up."),
		duration(&e.AgentTimeout, "agent_timeout", 30*time.Second, time.Second, time.Hour,
			"Time without an announcement after which an agent counts as lost."),
	}
}

// capacity returns an option for amounts of resource classes, as CLASS:AMOUNT.
func capacity(field *resource.Vector, name, help string) option {
	var items []string
	o := list(&items, name, nil, help)
	split := o.set
	o.restore = func() { *field = resource.Vector{} }
	o.texts = func() []string { return []string{formatCapacity(*field)} }
	o.set = func(raw string) (err error) {
		if err = split(raw); err == nil {
			*field, err = parseCapacity(items)
		}
		return err
	}
	return o
}

func parseCapacity(items []string) (v resource.Vector, err error) {
	for _, item := range items {
		class, text, _ := strings.Cut(item, ":")
		amount, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || amount < 0 {
			return v, fmt.Errorf("must be resource classes and amounts such as VCPU:64, not %q", item)
		}
		switch class = strings.TrimSpace(class); {
		case class == "VCPU":
			v.VCPUs = amount
		case class == "MEMORY_MB":
			v.MemoryMB = amount
		case class == "DISK_GB":
			v.DiskGB = amount
		case resource.IsCustomClass(class):
			if v.Custom == nil {
				v.Custom = map[string]int64{}
			}
			v.Custom[class] = amount
		default:
			return v, fmt.Errorf("must use the classes VCPU, MEMORY_MB, DISK_GB or CUSTOM_*, not %q", class)
		}
	}
	return v, nil
}

func formatCapacity(v resource.Vector) string {
	amounts := maps.Clone(v.Custom)
	if amounts == nil {
		amounts = map[string]int64{}
	}
	amounts["VCPU"], amounts["MEMORY_MB"], amounts["DISK_GB"] = v.VCPUs, v.MemoryMB, v.DiskGB
	var items []string
	for _, class := range slices.Sorted(maps.Keys(amounts)) {
		if amounts[class] > 0 {
			items = append(items, fmt.Sprintf("%s:%d", class, amounts[class]))
		}
	}
	return strings.Join(items, ",")
}
