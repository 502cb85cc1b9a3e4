// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// Each case is a file; want is [DEFAULT] log_file.
func TestAValueRefersToOtherOptionsAsInOsloConfig(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"an option of the same section":       {"log_dir = /var/log\nlog_file = $log_dir/a.log", "/var/log/a.log"},
		"an option that comes later":          {"log_file = $log_dir/a.log\nlog_dir = /var/log", "/var/log/a.log"},
		"braces end the name":                 {"host = ctl\nlog_file = ${host}_1.log", "ctl_1.log"},
		"an option of another section":        {"log_file = ${noauth.user_id}.log\n[noauth]\nuser_id = me", "me.log"},
		"the same without braces":             {"log_file = $noauth.user_id\n[noauth]\nuser_id = me", "me"},
		"sections in any case":                {"log_file = ${NoAuth.user_id}\n[NOAUTH]\nuser_id = me", "me"},
		"a default":                           {"log_file = $api.port", "1234"},
		"a value that refers to others":       {"log_file = $log_dir/a.log\nlog_dir = $state_path/log\nstate_path = /var/lib", "/var/lib/log/a.log"},
		"an option under its former name":     {"logdir = /var/log\nlog_file = $log_dir/$logdir", "/var/log//var/log"},
		"an option of a library":              {"log_file = ${cache.backend}\n[cache]\nbackend = x", "x"},
		"the last value counts":               {"log_dir = a\nlog_file = $log_dir\nlog_dir = b", "b"},
		"$$ is a dollar sign":                 {"log_file = a$$log_dir", "a$log_dir"},
		`\$ is a dollar sign`:                 {`log_file = a\$log_dir`, "a$log_dir"},
		"a dollar sign before no name stays":  {"log_file = $5 ${} a$", "$5 ${} a$"},
		"a replaced value is not read again":  {"log_file = $host\nhost = $$log_dir", "$log_dir"},
		"other sections fall back to DEFAULT": {"host = ctl\nlog_file = ${noauth.user_id}\n[noauth]\nuser_id = $host", "ctl"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, "[DEFAULT]\n"+tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Default.LogFile != tc.want {
				t.Errorf("got %q, want %q", cfg.Default.LogFile, tc.want)
			}
		})
	}
}

func TestAVariableRefersToOptionsToo(t *testing.T) {
	cfg, err := config.Load(nil, nil, map[string]string{"OS_DEFAULT__LOG_FILE": "$host.log", "OS_DEFAULT__HOST": "ctl"})
	if err == nil || !strings.Contains(err.Error(), `environment variable OS_DEFAULT__LOG_FILE: [DEFAULT] log_file: there is no option "host.log"`) {
		t.Errorf("a name that ends with .log: %v", err)
	}
	cfg, err = config.Load(nil, nil, map[string]string{"OS_DEFAULT__LOG_FILE": "${host}.log", "OS_DEFAULT__HOST": "ctl"})
	if err != nil || cfg.Default.LogFile != "ctl.log" {
		t.Errorf("got %q and error %v", cfg.Default.LogFile, err)
	}
}

func TestAReferenceThatCannotBeReplacedIsAnError(t *testing.T) {
	wantErrors(t, map[string]mistake{
		"no such option": {
			"[DEFAULT]\nlog_file = $log_folder/a",
			`almanac.conf:2: [DEFAULT] log_file: there is no option "log_folder" to which $log_folder could refer; write $$ for a dollar sign`,
		},
		"an option of another section without its section": {
			"[DEFAULT]\nlog_file = $user_id",
			`almanac.conf:2: [DEFAULT] log_file: there is no option "user_id" to which $user_id could refer; write $$ for a dollar sign`,
		},
		"itself": {
			"[DEFAULT]\nlog_file = a/$log_file",
			`almanac.conf:2: [DEFAULT] log_file: refers to itself: [DEFAULT] log_file -> [DEFAULT] log_file`,
		},
		"itself by way of another": {
			"[noauth]\nuser_id = $project_id\nproject_id = ${noauth.user_id}",
			"almanac.conf:2: [noauth] user_id: refers to itself: [noauth] user_id -> [noauth] project_id -> [noauth] user_id\n" +
				"almanac.conf:3: [noauth] project_id: refers to itself: [noauth] project_id -> [noauth] user_id -> [noauth] project_id",
		},
		"a part of a password, which is not repeated": {
			"[keystone_authtoken]\npassword = pa$sword",
			`almanac.conf:2: [keystone_authtoken] password: a $ is followed by a name that no option has; write $$ for a dollar sign`,
		},
		"a password, from an option that is no secret": {
			"[keystone_authtoken]\nusername = $password\npassword = hunter2",
			`almanac.conf:2: [keystone_authtoken] username: must not refer to [keystone_authtoken] password, which is a secret`,
		},
	})
}
