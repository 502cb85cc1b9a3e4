// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
)

func TestOptionsOfOpenStacksLibrariesAreTakenWithOneNotice(t *testing.T) {
	cfg, err := load(t, `[DEFAULT]
use_syslog = false
use_stderr = true
use_syslog = true
state_path = /var/lib/almanac
[Oslo_Concurrency]
lock_path = $state_path/tmp
an_option_of_tomorrow = 1
[oslo_messaging_rabbit]
rabbit_ha_queues = False
kombu_reconnect_delay = 1.0
[cors]
`)
	if err != nil {
		t.Fatal(err)
	}
	const want = "[oslo_messaging_rabbit] rabbit_ha_queues; [DEFAULT] use_syslog, use_stderr; [DEFAULT] state_path; " +
		"[oslo_messaging_rabbit] kombu_reconnect_delay; [oslo_concurrency] lock_path, an_option_of_tomorrow"
	if cfg.Notice() != want || len(cfg.Warnings) != 0 {
		t.Errorf("got the notice\n%s\nand warnings %q, want\n%s", cfg.Notice(), cfg.Warnings, want)
	}
	var b bytes.Buffer
	if err := config.Tell(&b, cfg.Ignored, []string{"beware"}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "notice: ") != 1 || !strings.Contains(text, "  [oslo_concurrency] lock_path, an_option_of_tomorrow: Almanac locks") ||
		!strings.HasSuffix(text, "\nwarning: beware\n") {
		t.Errorf("validate shows\n%s", text)
	}
}

func TestAnOptionThatWouldChangeSecurityOrDurabilityHasAWarningOfItsOwn(t *testing.T) {
	cfg, err := load(t, `[oslo_messaging_rabbit]
rabbit_ha_queues = true
[database]
connection_parameters = ssl_ca=/etc/ca.pem
[keystone_authtoken]
certfile = /etc/client.pem
enforce_token_bind = strict
[nova]
username = nova
password = hunter2
[glance]
auth_url = http://keystone
[ssl]
cert_file = /etc/api.pem
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, warning := range cfg.Warnings {
		options, _, _ := strings.Cut(strings.TrimPrefix(warning, "ignored: "), ":")
		got = append(got, options)
	}
	want := []string{
		"[oslo_messaging_rabbit] rabbit_ha_queues", "[database] connection_parameters", "[keystone_authtoken] enforce_token_bind",
		"[keystone_authtoken] certfile", "[nova] username, password; [glance] auth_url", "[ssl] cert_file",
	}
	if diff := cmp.Diff(want, got); diff != "" || cfg.Notice() != "" {
		t.Errorf("warnings (-want +got):\n%s\nnotice %q", diff, cfg.Notice())
	}
	if strings.Contains(strings.Join(cfg.Warnings, "\n"), "hunter2") {
		t.Error("a warning contains a password")
	}
}

func TestWhatProtectsAConnectionIsReadUnderItsFormerNames(t *testing.T) {
	cfg, err := load(t, `[oslo_messaging_rabbit]
rabbit_use_ssl = true
kombu_ssl_ca_certs = ca.pem
ssl_enforce_hostname_verification = true
rabbit_durable_queues = true
[DEFAULT]
sql_connection = sqlite:////former
[keystone_authtoken]
tenant_name = service
service_token_roles_required = false
`)
	if err != nil {
		t.Fatal(err)
	}
	tls := cfg.Rabbit.TLS
	if !tls.Enabled || tls.CAFile != "ca.pem" || !tls.VerifyHostname || !cfg.Rabbit.Queues.Durable {
		t.Errorf("the broker: %+v", cfg.Rabbit)
	}
	if cfg.Database.Connection != "sqlite:////former" || cfg.Keystone.ProjectName != "service" || cfg.Keystone.ServiceTokenRolesRequired {
		t.Errorf("got %q and %+v", cfg.Database.Connection, cfg.Keystone)
	}
}

func TestATypingMistakeBesideOptionsOfLibrariesStaysAnError(t *testing.T) {
	for text, want := range map[string]string{
		"[oslo_messaging_rabbit]\nrabbit_quorum_que = true": `did you mean "rabbit_quorum_queue"?`,
		"[DEFAULT]\nbind_host = 0.0.0.0":                    `there is no option "bind_host"`,
		"[oslo_concurency]":                                 `there is no section "oslo_concurency"`,
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestVariablesOfLibrariesAreTakenToo(t *testing.T) {
	cfg, err := config.Load(nil, nil, map[string]string{"OS_DEFAULT__USE_STDERR": "true"})
	if err != nil || cfg.Notice() != "[DEFAULT] use_stderr" {
		t.Errorf("got the notice %q and error %v", cfg.Notice(), err)
	}
}

func TestTheAgentTakesOptionsOfLibrariesToo(t *testing.T) {
	file := write(t, "almanac-power.conf", "[DEFAULT]\nuse_journal = true\npolicy_file = x\n[oslo_concurrency]\nlock_path = /tmp\n")
	_, err := config.LoadPowerAgent([]string{file}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), `there is no option "policy_file"`) {
		t.Errorf("a former name of an option that the agent does not have: %v", err)
	}
	cfg, err := config.LoadPowerAgent([]string{write(t, "almanac-power.conf", "[DEFAULT]\nuse_journal = true\n")}, nil, nil)
	if err != nil || cfg.Notice() != "[DEFAULT] use_journal" {
		t.Errorf("got the notice %q and error %v", cfg.Notice(), err)
	}
}
