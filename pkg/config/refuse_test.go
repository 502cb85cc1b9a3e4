// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// mistake is the text of a file with the error that it causes.
type mistake struct{ text, want string }

// wantErrors loads the file of each case.
func wantErrors(t *testing.T, cases map[string]mistake) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tc.text)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("kind is %q", fault.Of(err).Kind)
			}
		})
	}
}

func TestAWrongValueIsRefusedWithFileLineOptionAndWhatIsAllowed(t *testing.T) {
	wantErrors(t, map[string]mistake{
		"bool": {
			"[DEFAULT]\ndebug = maybe",
			`almanac.conf:2: [DEFAULT] debug: must be true or false (or yes, no, on, off, 1, 0), not "maybe"`,
		},
		"integer above its range": {
			"[api]\nport = 65536",
			`almanac.conf:2: [api] port: must be a whole number, from 0 to 65535, not "65536"`,
		},
		"integer beyond all ranges": {
			"[api]\nport = 99999999999999999999",
			`almanac.conf:2: [api] port: must be a whole number, from 0 to 65535, not "99999999999999999999"`,
		},
		"integer, empty": {
			"[api]\nport =",
			`almanac.conf:2: [api] port: must be a whole number, from 0 to 65535, not ""`,
		},
		"duration above its range": {
			"[reservation]\n\nlead_time = 31d",
			`almanac.conf:3: [reservation] lead_time: must be a duration in whole seconds such as 90, 2h30m or 30d, from 0 to 30d, not "31d"`,
		},
		"duration below its range": {
			"[lifecycle]\npoll_interval = 0",
			`almanac.conf:2: [lifecycle] poll_interval: must be a duration in whole seconds such as 90, 2h30m or 30d, from 1s to 1m, not "0"`,
		},
		"duration under zero": {
			"[limits]\nmax_duration = -1",
			`almanac.conf:2: [limits] max_duration: must be a duration in whole seconds such as 90, 2h30m or 30d, from 0 to 36500d, not "-1"`,
		},
		"choice": {
			"[reservation]\nfence = never",
			`almanac.conf:2: [reservation] fence: must be one of always, lead_time, pool, not "never"`,
		},
		"roles": {
			"[DEFAULT]\nroles = api, inventry",
			`almanac.conf:2: [DEFAULT] roles: must be some of api, inventory, energy, not "inventry"`,
		},
		"an item of a list": {
			"[reservation]\non_end_choices = delete, burn",
			`almanac.conf:2: [reservation] on_end_choices: must be some of delete, stop, shelve, leave, not "burn"`,
		},
		"groups of hosts": {
			"[energy]\nkeep_last = zone, rack",
			`almanac.conf:2: [energy] keep_last: must be some of zone, aggregate, trait, not "rack"`,
		},
		"forecaster": {
			"[energy]\nforecaster = oracle",
			`almanac.conf:2: [energy] forecaster: must be one of last_value, moving_maximum, time_of_week, holt_winters, not "oracle"`,
		},
		"formats of notifications": {
			"[oslo_messaging_notifications]\nformats = blazer",
			`almanac.conf:2: [oslo_messaging_notifications] formats: must be some of almanac, blazar, not "blazer"`,
		},
		"number below 0": {
			"[besteffort]\nscheduling_threshold_factor = -1",
			`almanac.conf:2: [besteffort] scheduling_threshold_factor: must be a number, from 0 to 1.7976931348623157e+308, not "-1"`,
		},
		"text, empty": {
			"[database]\nconnection =",
			`almanac.conf:2: [database] connection: must not be empty`,
		},
		"an option that was indented by mistake": {
			"[DEFAULT]\nlog_file = almanac.log\n  use_json = true",
			`almanac.conf:2: [DEFAULT] log_file: must be one line; an indented line continues the value of the line above it`,
		},
		"the same within a list": {
			"[noauth]\nroles = admin\n  user_id = me",
			`almanac.conf:2: [noauth] roles: must be one line; an indented line continues the value of the line above it`,
		},
	})
}

func TestAnUnknownNameIsAnErrorWithTheNearest(t *testing.T) {
	wantErrors(t, map[string]mistake{
		"option": {
			"[database]\nconection = x",
			`almanac.conf:2: [database] conection: there is no option "conection"; did you mean "connection"?`,
		},
		"option of another section": {
			"[DEFAULT]\nbusy_timeout = 1",
			`almanac.conf:2: [DEFAULT] busy_timeout: there is no option "busy_timeout"`,
		},
		"section, once for all its options": {
			"\n[reservations]\nfence = always\nlead_time = 1\n[api]\n",
			`almanac.conf:2: [reservations]: there is no section "reservations"; did you mean "reservation"?`,
		},
		"section without options": {
			"[colour]",
			`almanac.conf:1: [colour]: there is no section "colour"`,
		},
	})
}

func TestAllErrorsAreReportedTogetherInTheOrderOfReading(t *testing.T) {
	first := write(t, "a.conf", "[api]\nport = x\nno assignment\n[apo]\n")
	second := write(t, "b.conf", "[reservation]\nfence = never\n")
	missing := filepath.Join(t.TempDir(), "c.conf")
	cfg, err := config.Load([]string{first, missing, second}, nil, map[string]string{"OS_API__HOST": ""})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(config.Config{}, cfg, unexported); diff != "" {
		t.Errorf("a wrong configuration must not be used:\n%s", diff)
	}
	lines := strings.Split(err.Error(), "\n")
	want := []string{
		first + ":2: [api] port:", first + ":3: the line has no =", first + ":4: [apo]:",
		"the configuration file cannot be read: open " + missing,
		second + ":2: [reservation] fence:", "environment variable OS_API__HOST: [api] host: must not be empty",
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d errors, want %d:\n%v", len(lines), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("error %d: got %q, want it to begin %q", i, lines[i], want[i])
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Error("the cause of the unreadable file is lost")
	}
}

func TestAnUnreadableDirectoryIsAnErrorThatNamesIt(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "almanac.conf.d")
	_, err := config.Load(nil, []string{missing}, nil)
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, want an error that names %s", err, missing)
	}
}
