package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// almanacd runs a command of the service to its end.
func almanacd(t *testing.T, folder string, settings []string, arguments ...string) (output string, failed bool) {
	t.Helper()
	c := command(t.Context(), folder, settings...)
	c.Args = append(c.Args, arguments...)
	out, err := c.CombinedOutput()
	return string(out), err != nil
}

func TestTheSampleConfigurationIsValidAndShown(t *testing.T) {
	folder := newFolder(t, tenHosts)
	sample, failed := almanacd(t, folder, nil, "config", "sample")
	if failed {
		t.Fatal(sample)
	}
	if err := os.WriteFile(filepath.Join(folder, "almanac.conf"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	out, failed := almanacd(t, folder, nil, "config", "validate", "--config-file", "almanac.conf")
	if failed || !strings.Contains(out, "lists 10 hosts") {
		t.Errorf("validate: %s", out)
	}
	out, failed = almanacd(t, folder, []string{"OS_DATABASE__CONNECTION=oracle://u:secret@db/almanac"}, "config", "validate")
	if !failed || !strings.Contains(out, "connection: oracle") || strings.Contains(out, "secret") {
		t.Errorf("validate of a foreign database: %s", out)
	}
	out, failed = almanacd(t, folder, []string{"OS_DATABASE__CONNECTION=mysql+pymysql://u:secret@db/almanac"}, "config", "show")
	if failed || !strings.Contains(out, "mysql+pymysql://u:***@db/almanac") {
		t.Errorf("show: %s", out)
	}
}

func TestTheDatabaseIsBroughtUpToDateOnce(t *testing.T) {
	folder := newFolder(t, tenHosts)
	for _, step := range []struct{ command, want string }{
		{"status", "0001_reservations missing\n0002_replicas missing"},
		{"sync", "applied 0001_reservations\napplied 0002_replicas"},
		{"status", "0001_reservations applied\n0002_replicas applied"},
		{"sync", "the schema is up to date"},
	} {
		out, failed := almanacd(t, folder, nil, "db", step.command)
		if failed || strings.TrimSpace(out) != step.want {
			t.Errorf("db %s: %q, want %q", step.command, out, step.want)
		}
	}
}
