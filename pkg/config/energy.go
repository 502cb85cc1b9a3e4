package config

import (
	"slices"
	"time"
)

// Energy is section [energy]: which hosts are switched off and on, and when.
type Energy struct {
	Mode     string // "off", "observe", "recommend" or "auto"
	Rules    string // "safe" or "paper"
	StopFile string

	// Which hosts:
	Aggregates, Traits []string
	Property           string
	EfficiencyFile     string

	// Deciding:
	MeasureInterval, PlanInterval, StepInterval time.Duration
	Horizon                                     time.Duration
	IdleIntervals                               int
	Forecaster                                  string // empty: the best one
	ForecastWindow                              time.Duration

	// Safety:
	SpareHosts, SparePercent int
	SpareCapacity            []string // CLASS:AMOUNT
	KeepLast                 []string // "zone", "aggregate", "trait"
	MinOnTime, MinOffTime    time.Duration
	MaxOffPerCycle           int
	MaxSwitchesPerDay        int
	MaxBooting               int
	WakeTest                 bool
	MaxFailedBoots           int

	// Switching:
	SettleTime, SoftOffTimeout time.Duration
	HardOff                    bool
	BootTime, BootMargin       time.Duration
	BootTimeout                time.Duration
	BootRetries                int
	BootBackoff, ProbeInterval time.Duration
	AgentTimeout               time.Duration
	HistoryTime, AuditTime     time.Duration

	WattsURL, WattsQuery string
}

func energyOptions(e *Energy) []option {
	return slices.Concat(
		[]option{
			choice(&e.Mode, "mode", "off", []string{"off", "observe", "recommend", "auto"},
				"What is done about idle hosts, until an admin says otherwise: off: nothing. observe: it is counted and forecast. "+
					"recommend: plans are made, and carried out once they are approved. auto: plans are carried out. Where a host is "+
					"asleep, a reservation wakes it in all of them."),
			choice(&e.Rules, "rules", "safe", []string{"safe", "paper"},
				"safe: the limits below. paper: none of the limits, as in the evaluation of the energy paper; for trying it out."),
			text(&e.StopFile, "stop_file", "",
				"While this file is there nothing is switched off; hosts are still woken."),
		},
		energyHostOptions(e), energyPlanOptions(e), energyLimitOptions(e), energySwitchOptions(e),
	)
}

func energyHostOptions(e *Energy) []option {
	return []option{
		list(&e.Aggregates, "aggregates", nil, "Host aggregates whose hosts may be switched off."),
		list(&e.Traits, "traits", nil, "Traits whose hosts may be switched off."),
		text(&e.Property, "property", "energy_managed",
			"Property of a host: true lets it be switched off, false forbids it, whatever its aggregates and traits."),
		text(&e.EfficiencyFile, "efficiency_file", "",
			"CSV table of the hosts' power, with the columns host, flops_per_watt, idle_watts, full_watts, standby_watts, "+
				"off_watts and boot_joules; a host may be a pattern such as node-*."),
		text(&e.WattsURL, "prometheus_url", "", "Prometheus that is asked for the hosts' watts, where their machines do not tell."),
		text(&e.WattsQuery, "watts_query", "",
			"Query that gives the watts of a host; {host} in it is the host's name."),
	}
}

func energyPlanOptions(e *Energy) []option {
	return []option{
		duration(&e.MeasureInterval, "measure_interval", time.Minute, time.Second, time.Hour, "How often it is looked which hosts are idle."),
		duration(&e.PlanInterval, "plan_interval", 5*time.Minute, time.Second, day, "How often it is planned which hosts are switched."),
		duration(&e.StepInterval, "step_interval", 5*time.Second, time.Second, time.Minute,
			"How often it is looked after hosts that are being switched, and after reservations that need hosts."),
		duration(&e.Horizon, "horizon", 15*time.Minute, 0, day,
			"How long before the start of a reservation its hosts are awake; longer where they boot slowly."),
		integer(&e.IdleIntervals, "idle_intervals", 30, 1, 100_000,
			"For how many measurements without a break a host must be idle to be switched off."),
		text(&e.Forecaster, "forecaster", "",
			"How it is forecast how many hosts will be in use: last_value, moving_maximum, time_of_week or holt_winters. Empty means "+
				"the one that does best on recorded reservations (docs/energy-forecast.md)."),
		duration(&e.ForecastWindow, "forecast_window", time.Hour, time.Minute, 30*day, "Of moving_maximum, how far it looks back."),
		duration(&e.HistoryTime, "history_time", 35*day, day, 10*365*day, "How long the measured demand is kept, from which is forecast."),
		duration(&e.AuditTime, "audit_time", 365*day, day, longest, "How long it is kept who switched what, when and why."),
	}
}

func energyLimitOptions(e *Energy) []option {
	return []option{
		integer(&e.SpareHosts, "spare_hosts", 1, 0, 1_000_000, "How many idle hosts stay on beside what is needed."),
		integer(&e.SparePercent, "spare_percent", 10, 0, 100, "The same as a share of all hosts; the larger counts."),
		list(&e.SpareCapacity, "spare_capacity", nil,
			"The same as capacity, such as VCPU:64, MEMORY_MB:262144, CUSTOM_GPU:2."),
		list(&e.KeepLast, "keep_last", []string{"zone", "aggregate", "trait"},
			"Of each zone, aggregate and trait one host at least stays on. Only custom traits count."),
		duration(&e.MinOnTime, "min_on_time", 30*time.Minute, 0, 30*day, "How long a host stays on that was switched on."),
		duration(&e.MinOffTime, "min_off_time", 15*time.Minute, 0, 30*day, "How long a host stays off, but for reservations."),
		integer(&e.MaxOffPerCycle, "max_off_per_cycle", 1, 0, 1_000_000, "How many hosts one plan switches off. 0 means no limit."),
		integer(&e.MaxSwitchesPerDay, "max_switches_per_day", 6, 0, 10_000,
			"How often a host is switched in a day, off and on, but for reservations. 0 means no limit."),
		integer(&e.MaxBooting, "max_booting", 5, 0, 1_000_000,
			"How many hosts boot at once, but for reservations that would start late. 0 means no limit."),
		boolean(&e.WakeTest, "wake_test_required", true,
			"A host is only switched off after it has been shown once that it wakes up (almanac energy host test)."),
		integer(&e.MaxFailedBoots, "max_failed_boots", 3, 0, 10_000,
			"After so many hosts in a row that did not wake up, nothing is switched off until an admin says so. 0 means no limit."),
	}
}

func energySwitchOptions(e *Energy) []option {
	return []option{
		duration(&e.SettleTime, "settle_time", time.Minute, 0, time.Hour,
			"How long a host is closed to new instances before it is looked at once more and switched off."),
		duration(&e.SoftOffTimeout, "soft_off_timeout", 5*time.Minute, time.Second, time.Hour,
			"How long its operating system may take to stop."),
		boolean(&e.HardOff, "hard_off", false,
			"Cut the power of a host that does not stop by itself, and of one that hangs while it boots."),
		duration(&e.BootTime, "boot_time", 10*time.Minute, time.Second, day, "How long a host takes to boot of which nothing was measured."),
		duration(&e.BootMargin, "boot_margin", 2*time.Minute, 0, day, "How much earlier than that a host is woken for a reservation."),
		duration(&e.BootTimeout, "boot_timeout", 20*time.Minute, time.Second, day, "After what time a boot has failed."),
		integer(&e.BootRetries, "boot_retries", 2, 0, 100, "How often it is tried again then."),
		duration(&e.BootBackoff, "boot_backoff", 30*time.Second, 0, time.Hour, "How long it is waited before that; twice as long each time."),
		duration(&e.ProbeInterval, "probe_interval", time.Hour, time.Minute, 30*day, "How often a host that did not wake up is tried again."),
		duration(&e.AgentTimeout, "agent_timeout", 30*time.Second, time.Second, time.Hour,
			"After what time an agent is lost that is not heard of."),
	}
}
