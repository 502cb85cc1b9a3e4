// SPDX-License-Identifier: Apache-2.0

package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
)

func TestTheSampleConfigurationIsValidAndShown(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	sample, failed := built.Almanacd(t, folder, nil, "config", "sample")
	if failed {
		t.Fatal(sample)
	}
	if err := os.WriteFile(filepath.Join(folder, "almanac.conf"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	out, failed := built.Almanacd(t, folder, nil, "config", "validate", "--config-file", "almanac.conf")
	if failed || !strings.Contains(out, "lists 10 hosts") {
		t.Errorf("validate: %s", out)
	}
	out, failed = built.Almanacd(t, folder, []string{"OS_RESERVATION__ON_END=shelve", "OS_RESERVATION__ON_END_CHOICES=shelve"}, "config", "validate")
	if failed || !strings.Contains(out, "warning: [reservation] on_end_choices lacks delete") {
		t.Errorf("validate, without the end of Blazar's leases: %s", out)
	}
	out, failed = built.Almanacd(t, folder, []string{"OS_DEFAULT__LOG_DIR=nowhere"}, "config", "validate")
	if !failed || !strings.Contains(out, "[DEFAULT] log_dir: there is no folder nowhere") {
		t.Errorf("validate, without the folder of the log: %s", out)
	}
	if out, failed := built.Almanacd(t, folder, nil, "db", "sync"); failed {
		t.Fatal(out)
	}
	out, failed = built.Almanacd(t, folder, nil, "db", "purge", "--older-than", "90d")
	if failed || strings.Contains(out, "would be") || !strings.Contains(out, "deleted 0 reservations that were over by ") {
		t.Errorf("a purge of nothing: %s", out)
	}
	out, failed = built.Almanacd(t, folder, []string{"OS_DATABASE__CONNECTION=oracle://u:secret@db/almanac"}, "config", "validate")
	if !failed || !strings.Contains(out, "connection: oracle") || strings.Contains(out, "secret") {
		t.Errorf("validate of a foreign database: %s", out)
	}
	out, failed = built.Almanacd(t, folder, []string{"OS_DATABASE__CONNECTION=mysql+pymysql://u:secret@db/almanac"}, "config", "show")
	if failed || !strings.Contains(out, "mysql+pymysql://u:***@db/almanac") {
		t.Errorf("show: %s", out)
	}
}

func TestTheDatabaseIsBroughtUpToDateOnce(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	if out, failed := built.Almanacd(t, folder, nil, "db", "status", "--check"); !failed || !strings.Contains(out, "run almanacd db sync") {
		t.Errorf("db status --check before: %s", out)
	}
	for _, step := range []struct{ command, want string }{
		{"status", "0001_first_schema missing\n0002_leases missing\n0003_hosts missing\n0004_usage_told missing\n0005_floating_ips missing\n0006_maintenance missing\n0007_past missing\n0008_together missing\n0009_movable missing\n0010_series missing\n0011_webhooks missing\n0012_waiting missing"},
		{"sync", "applied 0001_first_schema\napplied 0002_leases\napplied 0003_hosts\napplied 0004_usage_told\napplied 0005_floating_ips\napplied 0006_maintenance\napplied 0007_past\napplied 0008_together\napplied 0009_movable\napplied 0010_series\napplied 0011_webhooks\napplied 0012_waiting"},
		{"status", "0001_first_schema applied\n0002_leases applied\n0003_hosts applied\n0004_usage_told applied\n0005_floating_ips applied\n0006_maintenance applied\n0007_past applied\n0008_together applied\n0009_movable applied\n0010_series applied\n0011_webhooks applied\n0012_waiting applied"},
		{"sync", "the schema is up to date"},
	} {
		out, failed := built.Almanacd(t, folder, nil, "db", step.command)
		if failed || strings.TrimSpace(out) != step.want {
			t.Errorf("db %s: %q, want %q", step.command, out, step.want)
		}
	}
}

func TestTheTrailOfAReservationSaysWhatHappenedAndWhoAsked(t *testing.T) {
	s := built.Start(t, built.NewFolder(t, built.TenHosts))
	id, _, exit := s.Almanac(t, "reservation", "create", "training", "--start", "+1h", "--duration", "1h", "-f", "value", "-c", "ID")
	if id = strings.TrimSpace(id); exit != 0 || id == "" {
		t.Fatalf("create: exit %d", exit)
	}
	if _, message, exit := s.Almanac(t, "reservation", "extend", id, "--by", "30m"); exit != 0 {
		t.Fatalf("extend: %s", message)
	}
	if _, message, exit := s.Almanac(t, "reservation", "delete", id); exit != 0 {
		t.Fatalf("delete: %s", message)
	}
	out, failed := built.Almanacd(t, s.Folder, nil, "db", "trail", id)
	var actions []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); fields[0] != "VERSION" {
			actions = append(actions, fields[2])
			if fields[4] != "demo" || !strings.HasPrefix(fields[5], "req-") {
				t.Errorf("the line lacks the user or the request: %q", line)
			}
		}
	}
	if failed || strings.Join(actions, " ") != "create modify cancel" {
		t.Errorf("the trail is:\n%s", out)
	}
	if out, failed := built.Almanacd(t, s.Folder, nil, "db", "trail", "nobody"); !failed || !strings.Contains(out, "there is no reservation nobody") {
		t.Errorf("the trail of an unknown reservation: %s", out)
	}
}

func TestPurgeAsksForAnAgeAndDeletesNothingYounger(t *testing.T) {
	s := built.Start(t, built.NewFolder(t, built.TenHosts))
	id, _, exit := s.Almanac(t, "reservation", "create", "gone", "--start", "+1h", "--duration", "1h", "-f", "value", "-c", "ID")
	if id = strings.TrimSpace(id); exit != 0 {
		t.Fatalf("create: exit %d", exit)
	}
	if _, message, exit := s.Almanac(t, "reservation", "delete", "gone"); exit != 0 {
		t.Fatal(message)
	}
	for _, step := range []struct {
		arguments []string
		failed    bool
		want      string
	}{
		{nil, true, "older-than"},
		{[]string{"--older-than", "1s"}, true, "at least an hour"},
		{[]string{"--older-than", "1h", "--dry-run"}, false, "0 reservations"},
		{[]string{"--older-than", "90 days"}, true, "such as 90d"},
		{[]string{"--older-than", "90d"}, false, "0 reservations"},
		{[]string{"--older-than", "1h"}, false, "0 reservations"},
	} {
		out, failed := built.Almanacd(t, s.Folder, nil, append([]string{"db", "purge"}, step.arguments...)...)
		if failed != step.failed || !strings.Contains(out, step.want) {
			t.Errorf("db purge %v: failed %v, %s", step.arguments, failed, out)
		}
	}
	if out, failed := built.Almanacd(t, s.Folder, nil, "db", "trail", id); failed {
		t.Errorf("its trail: %s", out)
	}
}
