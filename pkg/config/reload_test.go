// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestAReloadTakesWhatMayChangeAndNamesWhatNeedsARestart(t *testing.T) {
	const running = "[api]\nport = 0\n[noauth]\nroles = admin,member\n[limits]\nmax_duration = 2d\nextension_window = 1h\n"
	for name, tc := range map[string]struct {
		text        string
		environment map[string]string
		change      func(*config.Config)
		changed     []string
		ignored     []string
	}{
		"nothing": {text: running, change: func(*config.Config) {}},
		"the same in other words": {
			text:   "[limits]\nextension_window = 3600\nmax_duration = 48h\n[noauth]\nroles = admin, member\n[api]\nport = 00\n",
			change: func(*config.Config) {},
		},
		"every mutable option": {
			text: running + "max_duration = 3d\nmax_start_ahead = 4d\nmax_hosts_per_project = 5\n" +
				"max_host_hours_per_project = 6\nmax_empty_leases_per_project = 8\nextension_window = 7s\nmax_hold = 9s\nmax_holds_per_project = 10\nmax_waiting_per_project = 11\n" +
				"[reservation]\ndefault_policy = pe-worst-fit\non_end = stop\non_end_choices = stop, leave\n" +
				"[DEFAULT]\ndebug = true\n",
			change: func(c *config.Config) {
				c.Default.Debug = true
				c.Reservation.Defaults = planning.Defaults{
					Policy: calendar.PolicyPEWorstFit, OnEnd: reservation.OnEndStop, OnEndChoices: []reservation.OnEnd{reservation.OnEndStop, reservation.OnEndLeave},
				}
				c.Limits = planning.Limits{Duration: 3 * day, StartAhead: 4 * day, Hosts: 5, HostSeconds: 6 * 3600, EmptyLeases: 8, ExtensionWindow: 7, Hold: 9, Holds: 10, Waiting: 11}
			},
			changed: []string{
				"[DEFAULT] debug",
				"[reservation] default_policy", "[reservation] on_end", "[reservation] on_end_choices",
				"[limits] max_duration", "[limits] max_start_ahead", "[limits] max_hosts_per_project",
				"[limits] max_host_hours_per_project", "[limits] max_empty_leases_per_project", "[limits] extension_window", "[limits] max_hold", "[limits] max_holds_per_project",
				"[limits] max_waiting_per_project",
			},
		},
		"a line that is gone brings the default back": {
			text:    "[api]\nport = 0\n[noauth]\nroles = admin,member\n[limits]\nmax_duration = 2d\n",
			change:  func(c *config.Config) { c.Limits.ExtensionWindow = 0 },
			changed: []string{"[limits] extension_window"},
		},
		"what needs a restart stays, beside what changes": {
			text: "[DEFAULT]\nlog_dir = /var/log/almanac\n[api]\nport = 99\n[noauth]\nroles = member\n" +
				"[database]\nconnection = mysql://u:aaaaa@db/almanac\n[limits]\nmax_duration = 1d\nextension_window = 1h\n",
			change:  func(c *config.Config) { c.Limits.Duration = day },
			changed: []string{"[limits] max_duration"},
			ignored: []string{"[DEFAULT] log_dir", "[api] port", "[noauth] roles", "[database] connection"},
		},
		"the environment still wins": {
			text:        running + "max_duration = 9d\n",
			environment: map[string]string{"OS_LIMITS__MAX_DURATION": "2d"},
			change:      func(*config.Config) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := load(t, running)
			if err != nil {
				t.Fatal(err)
			}
			want := before
			tc.change(&want)
			after, changed, ignored, err := config.Reload(before, []string{write(t, "almanac.conf", tc.text)}, nil, tc.environment)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, after, unexported); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.changed, changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.ignored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWrongConfigurationChangesNothing(t *testing.T) {
	before := defaults(t)
	wrong := write(t, "almanac.conf", "[limits]\nmax_duration = 1d\nmax_hosts_per_project = many\n")
	after, changed, ignored, err := config.Reload(before, []string{wrong}, nil, nil)
	if err == nil || changed != nil || ignored != nil {
		t.Errorf("changed %v, ignored %v, error %v; want an error alone", changed, ignored, err)
	}
	if diff := cmp.Diff(before, after, unexported); diff != "" {
		t.Errorf("configuration (-before +after):\n%s", diff)
	}
}
