// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/config"
)

// greeted returns what almanacd writes at its start, with configuration files and changes of the default.
func greeted(t *testing.T, files []string, change func(*config.Config)) string {
	t.Helper()
	cfg, err := config.Load(nil, nil, map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	change(&cfg)
	var text strings.Builder
	if err := (&service{files: files}).greet(&text, cfg, "http://127.0.0.1:1235"); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestWhoeverStartsAlmanacdWithoutAConfigurationLearnsWhereThePageIs(t *testing.T) {
	text := greeted(t, nil, func(*config.Config) {})
	for _, want := range []string{"page: http://127.0.0.1:1235/dashboard/\n", "API:  http://127.0.0.1:1235/v1\n", "export ALMANAC_URL=http://127.0.0.1:1235\n", "almanac reservation create first"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if text := greeted(t, nil, func(c *config.Config) { c.API.Dashboard = false }); strings.Contains(text, "/dashboard/") {
		t.Errorf("there is no page, and almanacd writes\n%s", text)
	}
	for what, text := range map[string]string{
		"with a configuration file": greeted(t, []string{filepath.Join(t.TempDir(), "almanac.conf")}, func(*config.Config) {}),
		"without the API":           greeted(t, nil, func(c *config.Config) { c.Default.Roles = []string{config.RoleEnergy} }),
	} {
		if text != "" {
			t.Errorf("%s almanacd writes\n%s", what, text)
		}
	}
}
