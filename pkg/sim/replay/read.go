// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ReadSettings reads the settings of a YAML file:
//
//	settings:
//	  - name: careful
//	    policy: pe-worst-fit        # one of the seven; default first-fit
//	    patience: 2d                # seconds, or as 90s, 2h30m, 2d; default 7d
//	    deadline_factor: 3          # instead of patience: times what a job is booked for
//	    limits: {max_duration: 3d, max_start_ahead: 30d, max_hosts: 64, max_host_hours: 5000}
//	    energy: {mode: auto, boot_time: 152, shutdown_time: 6, boot_spread: 0.2, spare_hosts: 2}
//
// energy accepts the rules of [energy] in almanac.conf under their names: rules, horizon,
// idle_intervals, boot_margin, spare_hosts, spare_percent, min_on_time, min_off_time,
// max_off_per_cycle, max_switches_per_day, max_booting; also measure_interval, plan_interval,
// forecaster and forecast_window.
//
// Absent fields are as in DefaultSetting. The error is an Invalid fault that names the field.
func ReadSettings(text []byte) ([]Setting, error) {
	const most = 1 << 20
	if len(text) > most {
		return nil, fault.Field("settings", "the file is longer than 1 MiB")
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if !printable(first) {
			first = strconv.Quote(first)
		}
		return nil, fault.Field("settings", "the file is not YAML: %s", first)
	}
	r := &settingsReader{}
	var all []Setting
	for key, value := range r.mapping("", document, "settings") {
		list, ok := value.([]any)
		if !ok || len(list) == 0 {
			r.fail(key, "must be a list of settings")
		}
		for i, entry := range list {
			all = append(all, r.setting(fmt.Sprintf("settings[%d]", i), entry))
		}
	}
	if r.err == nil && len(all) == 0 {
		r.fail("settings", "the file has no settings")
	}
	if r.err != nil {
		return nil, r.err
	}
	return all, nil
}

// settingsReader reads values; err is the first mistake.
type settingsReader struct{ err error }

func (r *settingsReader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fault.Field(field, format, args...)
	}
}

// mapping returns the values of a mapping. Keys that are not in known are a mistake.
func (r *settingsReader) mapping(field string, value any, known ...string) map[string]any {
	if value == nil {
		return nil
	}
	m, ok := value.(map[string]any)
	if !ok {
		r.fail(strings.TrimSuffix(field, "."), "must be a mapping of %s", strings.Join(known, ", "))
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, key) {
			name := key
			if !printable(name) {
				name = strconv.Quote(name)
			}
			r.fail(field+name, "%s; known are %s", fault.Unknown("field", key, known), strings.Join(known, ", "))
		}
	}
	return m
}

func (r *settingsReader) setting(field string, value any) Setting {
	s := DefaultSetting()
	f := field + "."
	m := r.mapping(f, value, "name", "policy", "patience", "deadline_factor", "limits", "energy")
	s.Name = field
	r.text(m, f, "name", &s.Name)
	r.text(m, f, "policy", (*string)(&s.Policy))
	r.seconds(m, f, "patience", &s.Patience)
	r.number(m, f, "deadline_factor", &s.DeadlineFactor)
	if m["patience"] != nil && m["deadline_factor"] != nil {
		r.fail(f+"deadline_factor", "replaces patience; use only one of them")
	}
	if m["name"] == nil && m["policy"] != nil {
		s.Name = string(s.Policy)
	}

	l := r.mapping(f+"limits.", m["limits"], "max_duration", "max_start_ahead", "max_hosts", "max_host_hours")
	r.seconds(l, f+"limits.", "max_duration", &s.Limits.Duration)
	r.seconds(l, f+"limits.", "max_start_ahead", &s.Limits.StartAhead)
	r.count(l, f+"limits.", "max_hosts", &s.Limits.Hosts)
	var hours float64
	r.number(l, f+"limits.", "max_host_hours", &hours)
	s.Limits.HostSeconds = int64(hours * 3600)

	r.energy(m["energy"], f+"energy.", &s.Energy)
	if r.err == nil {
		r.err = s.check(field + ".")
	}
	return s
}

func (r *settingsReader) energy(value any, f string, to *Energy) {
	m := r.mapping(f, value, "mode", "rules", "measure_interval", "plan_interval", "forecaster", "forecast_window",
		"boot_time", "shutdown_time", "boot_spread", "horizon", "idle_intervals", "boot_margin", "spare_hosts", "spare_percent",
		"min_on_time", "min_off_time", "max_off_per_cycle", "max_switches_per_day", "max_booting")
	r.mode(m, f, &to.Mode)
	rules := ""
	switch r.text(m, f, "rules", &rules); rules {
	case "":
	case "paper":
		to.Rules = energy.Paper()
	default:
		r.fail(f+"rules", "is %q; it must be paper or absent", rules)
	}
	r.text(m, f, "forecaster", &to.Forecaster)
	r.number(m, f, "boot_spread", &to.BootSpread)
	times := map[string]*int64{
		"measure_interval": &to.MeasureInterval, "plan_interval": &to.PlanInterval, "forecast_window": &to.Window,
		"boot_time": &to.BootTime, "shutdown_time": &to.ShutdownTime, "horizon": &to.Rules.Horizon, "boot_margin": &to.Rules.BootMargin,
		"min_on_time": &to.Rules.MinOn, "min_off_time": &to.Rules.MinOff,
	}
	counts := map[string]*int{
		"idle_intervals": &to.Rules.IdleNeeded, "spare_hosts": &to.Rules.SpareHosts, "spare_percent": &to.Rules.SparePercent,
		"max_off_per_cycle": &to.Rules.MostOff, "max_switches_per_day": &to.Rules.MostSwitches, "max_booting": &to.Rules.MostBooting,
	}
	for _, key := range slices.Sorted(maps.Keys(m)) { // in order, so that of two mistakes it always reports the same
		if to, is := times[key]; is {
			r.seconds(m, f, key, to)
		}
		if to, is := counts[key]; is {
			r.count(m, f, key, to)
		}
	}
}

// mode reads energy.mode. YAML reads off without quotes as false.
func (r *settingsReader) mode(m map[string]any, prefix string, to *energy.Mode) {
	if m["mode"] == false {
		*to = energy.ModeOff
		return
	}
	r.text(m, prefix, "mode", (*string)(to))
}

func (r *settingsReader) text(m map[string]any, prefix, key string, to *string) {
	switch v := m[key].(type) {
	case nil:
	case string:
		*to = v
	default:
		r.fail(prefix+key, "must be a word, not %s", shown(v))
	}
}

// shown returns the beginning of a value in quotes, on one line, for a message.
func shown(value any) string { return fmt.Sprintf("%.40q", fmt.Sprint(value)) }

func (r *settingsReader) number(m map[string]any, prefix, key string, to *float64) {
	const most = 1e12
	var n float64
	switch v := m[key].(type) {
	case nil:
		return
	case uint64:
		n = float64(v)
	case int64:
		n = float64(v)
	case float64:
		n = v
	default:
		r.fail(prefix+key, "must be a number, not %s", shown(v))
		return
	}
	if !(n >= 0 && n <= most) {
		r.fail(prefix+key, "is %v; it must be from 0 to %v", n, most)
		return
	}
	*to = n
}

func (r *settingsReader) count(m map[string]any, prefix, key string, to *int) {
	n := float64(*to)
	r.number(m, prefix, key, &n)
	if n != math.Trunc(n) {
		r.fail(prefix+key, "must be a whole number, not %v", n)
		return
	}
	*to = int(n)
}

// seconds reads a number of seconds, or a duration in the form of span.ParseDuration.
func (r *settingsReader) seconds(m map[string]any, prefix, key string, to *int64) {
	text, ok := m[key].(string)
	if !ok {
		n := float64(*to)
		r.number(m, prefix, key, &n)
		if n != math.Trunc(n) {
			r.fail(prefix+key, "must be whole seconds, not %v", n)
			return
		}
		*to = int64(n)
		return
	}
	seconds, err := span.ParseDuration(text)
	if err != nil || seconds < 0 || seconds > longest {
		r.fail(prefix+key, "is %s; it must be whole seconds, or as 90s, 2h30m or 2d, up to a year", shown(m[key]))
		return
	}
	*to = seconds
}
