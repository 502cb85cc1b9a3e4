// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestQuantilesAreKnownToHalfAPercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<rapid.IntRange(1, 45).Draw(t, "bits")), 1, 200).Draw(t, "values")
		var q quantiles
		for _, v := range values {
			q.add(v)
		}
		slices.Sort(values)
		share := rapid.Float64Range(0.01, 1).Draw(t, "share")
		want := float64(values[int(math.Ceil(share*float64(len(values))))-1])
		got, ok := q.at(share)
		if !ok || math.Abs(got-want) > 0.01*want {
			t.Fatalf("the quantile %v of %v is %v, want %v", share, values, got, want)
		}
		if n := q.upTo(values[len(values)-1]); n != int64(len(values)) {
			t.Fatalf("%d of %d are up to the largest", n, len(values))
		}
	})
}

func TestSlotsKeepTheirSumAndTheirNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tl tally
		var want float64
		for range rapid.IntRange(1, 30).Draw(t, "jobs") {
			begin := rapid.Int64Range(0, 1<<rapid.IntRange(1, 40).Draw(t, "bits")).Draw(t, "begin")
			long := rapid.Int64Range(1, 1<<30).Draw(t, "long")
			tl.use(begin, begin+long, 3)
			want += 3 * float64(long)
		}
		var sum float64
		for _, s := range tl.used.at {
			sum += float64(s)
		}
		if len(tl.used.at) > mostSlots || math.Abs(sum-want) > 1e-6*want || tl.inUse != want {
			t.Fatalf("%d slots with %v in them, want %v", len(tl.used.at), sum, want)
		}
		few, wide := tl.used.merged(7)
		if len(few) > 7 || wide%tl.used.width != 0 {
			t.Fatalf("%d parts of %d s, of slots of %d s", len(few), wide, tl.used.width)
		}
	})
}

const example = `settings:
  - name: careful
    policy: pe-worst-fit
    patience: 2d
    limits: {max_duration: 3d, max_start_ahead: 30d, max_hosts: 64, max_host_hours: 5000}
    energy: {mode: auto, horizon: 20m, idle_intervals: 3, boot_time: 152, shutdown_time: 6,
             boot_spread: 0.2, forecaster: last_value, forecast_window: 1h, spare_hosts: 2,
             measure_interval: 2m, plan_interval: 300}
  - policy: duration-best-fit
    deadline_factor: 3.5
    energy: {mode: off}
`

func TestSettingsAreReadFromYAML(t *testing.T) {
	got, err := ReadSettings([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	careful := DefaultSetting()
	careful.Name, careful.Policy, careful.Patience = "careful", calendar.PolicyPEWorstFit, 2*24*3600
	careful.Limits = planning.Limits{Duration: 3 * 24 * 3600, StartAhead: 30 * 24 * 3600, Hosts: 64, HostSeconds: 5000 * 3600}
	rules := careful.Energy.Rules // the service's own
	rules.Horizon, rules.IdleNeeded, rules.SpareHosts = 1200, 3, 2
	careful.Energy = Energy{
		Mode: energy.ModeAuto, MeasureInterval: 120, PlanInterval: 300, Rules: rules,
		BootTime: 152, ShutdownTime: 6, BootSpread: 0.2, Forecaster: "last_value", Window: 3600,
	}
	best := DefaultSetting()
	best.Name, best.Policy, best.DeadlineFactor = "duration-best-fit", calendar.PolicyDurationBestFit, 3.5
	if diff := cmp.Diff([]Setting{careful, best}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheRulesOfThePaperTakeThePlaceOfTheServices(t *testing.T) {
	got, err := ReadSettings([]byte("settings: [{energy: {mode: auto, rules: paper, max_booting: 4}}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := energy.Paper()
	want.MostBooting = 4
	if diff := cmp.Diff(want, got[0].Energy.Rules); diff != "" {
		t.Error(diff)
	}
}

func TestSettingsThatAreWrongNameTheirField(t *testing.T) {
	for text, field := range map[string]string{
		"":                               "settings",
		"settings: []":                   "settings",
		"[":                              "settings",
		"setings: [{}]":                  "setings",
		"settings: {name: a}":            "settings",
		"settings: [a]":                  "settings[0]",
		"settings: [{polcy: first-fit}]": "settings[0].polcy",
		"settings: [{}, {policy: best}]": "settings[1].policy",
		"settings: [{policy: 7}]":        "settings[0].policy",
		"settings: [{patience: soon}]":   "settings[0].patience",
		"settings: [{patience: -5}]":     "settings[0].patience",
		"settings: [{patience: 9000d}]":  "settings[0].patience",
		"settings: [{patience: 1h, deadline_factor: 2}]":                  "settings[0].deadline_factor",
		"settings: [{limits: {max_hosts: 1.5}}]":                          "settings[0].limits.max_hosts",
		"settings: [{limits: {hosts: 1}}]":                                "settings[0].limits.hosts",
		"settings: [{energy: {mode: full}}]":                              "settings[0].energy.mode",
		"settings: [{energy: {mode: auto, forecaster: crystal_ball}}]":    "settings[0].energy.forecaster",
		"settings: [{energy: {mode: auto, measure_interval: 7}}]":         "settings[0].energy.measure_interval",
		"settings: [{name: ''}]":                                          "settings[0].name",
		"settings: [{name: \"a\\u0007\"}]":                                "settings[0].name",
		"settings: [{patience: 1.7}]":                                     "settings[0].patience",
		"settings: [{patience: 1.5s}]":                                    "settings[0].patience",
		"settings: [{energy: {spare_percent: 101}}]":                      "settings[0].energy.spare_percent",
		"settings: [{energy: {mode: auto, horizon: 2d}}]":                 "settings[0].energy.horizon",
		"settings: [{energy: {mode: auto, min_off_time: 31d}}]":           "settings[0].energy.min_off_time",
		"settings: [{energy: {mode: auto, max_switches_per_day: 10001}}]": "settings[0].energy.max_switches_per_day",
		"settings: [{energy: {mode: auto, measure_interval: 2h}}]":        "settings[0].energy.measure_interval",
		"settings: [{energy: {mode: auto, boot_time: 0}}]":                "settings[0].energy.boot_time",
	} {
		_, err := ReadSettings([]byte(text))
		t.Run(text, func(t *testing.T) { refused(t, err, field) })
	}
}

func FuzzReadSettings(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, err := ReadSettings(text)
		if err == nil && len(settings) == 0 {
			t.Error("there are no settings, and no error")
		}
	})
}

func TestReplaysOfRealLogsRunThrough(t *testing.T) {
	folder := os.Getenv("ALMANAC_DATA")
	if folder == "" {
		t.Skip("ALMANAC_DATA does not name the folder of the real logs")
	}
	jobs := int64(2000)
	if testing.Short() {
		jobs = 500
	}
	settings := []Setting{named("first-fit", nil), named("pe-worst-fit", func(s *Setting) { s.Policy = calendar.PolicyPEWorstFit })}
	for name, o := range map[string]Options{
		"KTH-SP2":          {Traces: []string{folder + "/pwa/KTH-SP2-1996-2.swf.gz"}, ProcsPerHost: 1},
		"Blue with leases": {Traces: []string{folder + "/haizea/blue-30days.swf.gz", leasesOf(t, folder)}, ProcsPerHost: 8, Hosts: 144},
		"Grid'5000":        {Traces: []string{folder + "/grid5000/grid5000_reservation_jobs.log.gz"}, ProcsPerHost: 1, Hosts: 64, MakeUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Settings, o.MostJobs, o.Draw = settings, jobs, Defaults().Draw
			r := run(t, o)
			if got := value(t, r, "first-fit", "reserved_jobs") + value(t, r, "first-fit", "other_jobs"); got != float64(jobs) {
				t.Errorf("%v jobs were replayed, not %d", got, jobs)
			}
			if used := value(t, r, "first-fit", "utilization"); used <= 0 || used > 1 {
				t.Errorf("utilization is %v", used)
			}
			if err := r.Write(t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}
