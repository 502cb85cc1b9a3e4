// SPDX-License-Identifier: Apache-2.0

package servicelog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheLogLiesWhereOsloPutsIt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, tc := range map[string]struct {
		file, dir string
		want      string // empty: the fallback
	}{
		"neither":                       {"", "", ""},
		"a file":                        {"a.log", "", "a.log"},
		"a folder":                      {"", dir, "almanacd.log"},
		"a file in a folder":            {"b.log", dir, "b.log"},
		"an absolute file and a folder": {filepath.Join(dir, "c.log"), "/nowhere", "c.log"},
	} {
		t.Run(name, func(t *testing.T) {
			var fallback bytes.Buffer
			log, err := Open(config.Default{LogFile: tc.file, LogDir: tc.dir}, "almanacd", &fallback)
			if err != nil {
				t.Fatal(err)
			}
			log.Info("hello")
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			got := fallback.String()
			if tc.want != "" {
				if got != "" {
					t.Errorf("the fallback has %q", got)
				}
				got = content(t, tc.want)
			}
			if !strings.HasSuffix(got, " INFO almanac [-] hello\n") {
				t.Errorf("the log is %q", got)
			}
		})
	}
}

func TestAReopenedLogLeavesTheFileThatWasMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "almanacd.log")
	log, err := Open(config.Default{LogFile: path}, "almanacd", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	api := log.With("component", "api")
	api.Debug("hidden")
	api.Info("first")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	api.Info("second")
	if err := log.Reopen(); err != nil {
		t.Fatal(err)
	}
	log.SetLevel(config.Default{Debug: true})
	api.Debug("third")
	log.SetLevel(config.Default{})
	api.Debug("hidden")
	api.Info("fourth")
	for file, want := range map[string][]string{path + ".1": {"first", "second"}, path: {"third", "fourth"}} {
		got := content(t, file)
		if strings.Count(got, "\n") != 2 || !strings.Contains(got, want[0]) || !strings.Contains(got, want[1]) {
			t.Errorf("%s has %q, want a line with each of %v", filepath.Base(file), got, want)
		}
	}
}

func TestALogThatCannotBeReopenedContinuesInTheOpenFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := Open(config.Default{LogDir: dir}, "almanacd", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if err := os.Rename(dir, dir+".1"); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want one that names %s", err, dir)
	}
	log.Info("still here")
	if got := content(t, filepath.Join(dir+".1", "almanacd.log")); !strings.Contains(got, "still here") {
		t.Errorf("the log has %q", got)
	}
}

func TestALogThatCannotBeOpenedStopsTheStart(t *testing.T) {
	_, err := Open(config.Default{LogFile: filepath.Join(t.TempDir(), "none", "a.log")}, "almanacd", nil)
	if err == nil || !strings.Contains(err.Error(), "log_file") {
		t.Errorf("error %v, want one that names log_file", err)
	}
}
