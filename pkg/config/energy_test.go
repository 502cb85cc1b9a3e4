// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

const day = 24 * 3600 // seconds

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
drain_time = 19
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
	Paper: true, StopFile: "stop", EfficiencyFile: "watts.csv", WattsURL: "http://prometheus:9090", WattsQuery: `watts{host="{host}"}`,
	ForecasterName: "last_value", ForecastWindow: 7 * 60, AuditTime: 28 * day, AgentTimeout: 27 * time.Second,
	Options: controller.Options{
		Mode: energy.ModeRecommend, MeasureEvery: 2 * 60, PlanEvery: 3 * 60, StepEvery: 4 * time.Second,
		Keep: 8 * day, MostFailed: 18, BootTime: 21,
		Admission: energy.Admission{Aggregates: []string{"a", "b"}, Traits: []string{"CUSTOM_X"}, Property: "managed"},
		Rules: energy.Rules{
			Horizon: 5 * 60, IdleNeeded: 6, BootMargin: 22, SpareHosts: 9, SparePercent: 11, SpareCapacity: resource.Vector{VCPUs: 12},
			KeepLast: []energy.Group{energy.Zones}, MinOn: 13 * 60, MinOff: 14 * 60, MostOff: 15, MostSwitches: 16, MostBooting: 17,
		},
		Switching: energy.Switching{Settle: 19, OffPatience: 20, Hard: true, BootTimeout: 23, Retries: 24, Backoff: 25, Probe: 26 * 60},
	},
}

var energyDefaults = config.Energy{
	ForecasterName: "moving_maximum", ForecastWindow: 3600, AuditTime: 365 * day, AgentTimeout: 30 * time.Second,
	Options: controller.Options{
		Mode: energy.ModeOff, MeasureEvery: 60, PlanEvery: 5 * 60, StepEvery: 5 * time.Second,
		Keep: 35 * day, MostFailed: 3, BootTime: 10 * 60, WakeTest: true,
		Admission: energy.Admission{Property: "energy_managed"},
		Rules: energy.Rules{
			Horizon: 15 * 60, IdleNeeded: 30, BootMargin: 2 * 60, SpareHosts: 1, SparePercent: 10,
			KeepLast: []energy.Group{energy.Zones, energy.Aggregates, energy.Traits}, MinOn: 30 * 60, MinOff: 15 * 60,
			MostOff: 1, MostSwitches: 6, MostBooting: 5,
		},
		Switching: energy.Switching{Settle: 60, OffPatience: 5 * 60, BootTimeout: 20 * 60, Retries: 2, Backoff: 30, Probe: 3600},
	},
}
