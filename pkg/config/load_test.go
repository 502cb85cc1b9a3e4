// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// unexported compares the unexported fields of other packages' Options too.
var unexported = cmp.Exporter(func(reflect.Type) bool { return true })

// write writes text to a file called name in a new directory.
func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads one file, almanac.conf in the working directory, without environment.
func load(t *testing.T, text string) (config.Config, error) {
	t.Helper()
	t.Chdir(filepath.Dir(write(t, "almanac.conf", text)))
	return config.Load([]string{"almanac.conf"}, nil, nil)
}

func defaults(t *testing.T) config.Config {
	t.Helper()
	cfg, err := config.Load(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestLaterWinsOverEarlier(t *testing.T) {
	const name = "OS_RESERVATION__FENCE"
	for rule, tc := range map[string]struct {
		files     []string
		variables map[string]string
		want      string
	}{
		"the last line of a file":            {[]string{"fence = lead_time\nfence = always"}, nil, "always"},
		"the later file":                     {[]string{"fence = always", "fence = lead_time"}, nil, "lead_time"},
		"a later file that is silent":        {[]string{"fence = lead_time", ""}, nil, "lead_time"},
		"the environment":                    {[]string{"fence = always"}, map[string]string{name: "lead_time"}, "lead_time"},
		"the environment over a wrong value": {[]string{"fence = never"}, map[string]string{name: "always"}, "always"},
		"the environment alone":              {nil, map[string]string{name: "lead_time"}, "lead_time"},
	} {
		t.Run(rule, func(t *testing.T) {
			var paths []string
			for _, text := range tc.files {
				paths = append(paths, write(t, "almanac.conf", "[reservation]\n"+text))
			}
			cfg, err := config.Load(paths, nil, tc.variables)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(cfg.Reservation.Fence); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheEnvironmentNamesGroupAndOptionInCapitals(t *testing.T) {
	cfg, err := config.Load(nil, nil, map[string]string{
		"OS_DATABASE__CONNECTION": "sqlite:////var/lib/almanac.db", "OS_DEFAULT__USE_JSON": "on",
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Database.Connection != "sqlite:////var/lib/almanac.db" || !cfg.Default.UseJSON {
		t.Errorf("got %+v and %+v", cfg.Database, cfg.Default)
	}
}

func TestSectionNamesAreTakenInAnyCase(t *testing.T) {
	cfg, err := load(t, "[Database]\nbusy_timeout = 1\n[default]\ndebug = true\n")
	if err != nil || cfg.Database.BusyTimeout != time.Second || !cfg.Default.Debug {
		t.Errorf("got %+v, %+v and error %v", cfg.Database, cfg.Default, err)
	}
}

func TestADirectoryIsReadAfterTheFilesInTheOrderOfItsNames(t *testing.T) {
	file := write(t, "almanac.conf", "[noauth]\nproject_id = file\nuser_id = file\n")
	dir := filepath.Dir(write(t, "20.conf", "[noauth]\nproject_id = twenty\n"))
	for name, text := range map[string]string{
		"10.conf": "[noauth]\nproject_id = ten\nroles = ten\n", "30.conf.bak": "wrong", ".#20.conf": "wrong", "README": "wrong",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load([]string{file}, []string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.NoAuth{ProjectID: "twenty", UserID: "file", Roles: []string{"ten"}}
	if diff := cmp.Diff(want, cfg.NoAuth); diff != "" {
		t.Errorf("section noauth (-want +got):\n%s", diff)
	}
}

func TestAMistypedVariableOfOurSectionsIsAnError(t *testing.T) {
	_, err := config.Load(nil, nil, map[string]string{
		"OS_API__PRT": "1", "OS_AUTH_URL": "http://keystone", "OS_COMPUTE__WORKERS": "4", "HOME": "/",
	})
	if err == nil || !strings.Contains(err.Error(), `"OS_API__PRT"`) || !strings.Contains(err.Error(), `"OS_API__PORT"`) {
		t.Errorf("error %v, want the name and the nearest one", err)
	}
	if err != nil && (strings.Contains(err.Error(), "OS_AUTH_URL") || strings.Contains(err.Error(), "OS_COMPUTE")) {
		t.Errorf("variables of others are refused: %v", err)
	}
}

// Only a file that certainly does not exist is none: one that this user cannot see must not lead to the defaults.
func TestTheUsualFileIsReadUnlessItDoesNotExist(t *testing.T) {
	folder := t.TempDir()
	missing := filepath.Join(folder, "almanac.conf")
	if files := config.Usual(missing); files != nil {
		t.Errorf("a file that does not exist: %v", files)
	}
	if err := os.WriteFile(missing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unreachable := filepath.Join(missing, "almanac.conf") // below a file, like below a closed folder
	for _, path := range []string{missing, unreachable} {
		if files := config.Usual(path); len(files) != 1 || files[0] != path {
			t.Errorf("%s: %v", path, files)
		}
	}
	if _, err := config.Load(config.Usual(unreachable), nil, nil); err == nil || !strings.Contains(err.Error(), unreachable) {
		t.Errorf("a file that cannot be reached: %v", err)
	}
}
