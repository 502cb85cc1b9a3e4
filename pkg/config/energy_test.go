package config_test

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// energyText sets every option of [energy] to a value other than its default.
const energyText = `[energy]
mode = recommend
rules = paper
stop_file = stop
aggregates = a, b
traits = CUSTOM_X
property = managed
efficiency_file = watts.csv
prometheus_url = http://prometheus:9090
watts_query = watts{host="{host}"}
measure_interval = 2m
plan_interval = 3m
step_interval = 4
horizon = 5m
idle_intervals = 6
forecaster = last_value
forecast_window = 7m
history_time = 8d
audit_time = 28d
spare_hosts = 9
spare_percent = 11
spare_capacity = VCPU:12
keep_last = zone
min_on_time = 13m
min_off_time = 14m
max_off_per_cycle = 15
max_switches_per_day = 16
max_booting = 17
wake_test_required = false
max_failed_boots = 18
settle_time = 19
soft_off_timeout = 20
hard_off = true
boot_time = 21
boot_margin = 22
boot_timeout = 23
boot_retries = 24
boot_backoff = 25
probe_interval = 26m
agent_timeout = 27
`

var energySet = config.Energy{
	Mode: "recommend", Rules: "paper", StopFile: "stop",
	Aggregates: []string{"a", "b"}, Traits: []string{"CUSTOM_X"}, Property: "managed", EfficiencyFile: "watts.csv",
	WattsURL: "http://prometheus:9090", WattsQuery: `watts{host="{host}"}`,
	MeasureInterval: 2 * time.Minute, PlanInterval: 3 * time.Minute, StepInterval: 4 * time.Second,
	Horizon: 5 * time.Minute, IdleIntervals: 6, Forecaster: "last_value", ForecastWindow: 7 * time.Minute, HistoryTime: 8 * 24 * time.Hour, AuditTime: 28 * 24 * time.Hour,
	SpareHosts: 9, SparePercent: 11, SpareCapacity: []string{"VCPU:12"}, KeepLast: []string{"zone"},
	MinOnTime: 13 * time.Minute, MinOffTime: 14 * time.Minute, MaxOffPerCycle: 15, MaxSwitchesPerDay: 16, MaxBooting: 17,
	WakeTest: false, MaxFailedBoots: 18,
	SettleTime: 19 * time.Second, SoftOffTimeout: 20 * time.Second, HardOff: true,
	BootTime: 21 * time.Second, BootMargin: 22 * time.Second, BootTimeout: 23 * time.Second, BootRetries: 24,
	BootBackoff: 25 * time.Second, ProbeInterval: 26 * time.Minute, AgentTimeout: 27 * time.Second,
}

var energyDefaults = config.Energy{
	Mode: "off", Rules: "safe", Property: "energy_managed",
	MeasureInterval: time.Minute, PlanInterval: 5 * time.Minute, StepInterval: 5 * time.Second,
	Horizon: 15 * time.Minute, IdleIntervals: 30, ForecastWindow: time.Hour, HistoryTime: 35 * 24 * time.Hour, AuditTime: 365 * 24 * time.Hour,
	SpareHosts: 1, SparePercent: 10, KeepLast: []string{"zone", "aggregate", "trait"},
	MinOnTime: 30 * time.Minute, MinOffTime: 15 * time.Minute, MaxOffPerCycle: 1, MaxSwitchesPerDay: 6, MaxBooting: 5,
	WakeTest: true, MaxFailedBoots: 3,
	SettleTime: time.Minute, SoftOffTimeout: 5 * time.Minute,
	BootTime: 10 * time.Minute, BootMargin: 2 * time.Minute, BootTimeout: 20 * time.Minute, BootRetries: 2,
	BootBackoff: 30 * time.Second, ProbeInterval: time.Hour, AgentTimeout: 30 * time.Second,
}
