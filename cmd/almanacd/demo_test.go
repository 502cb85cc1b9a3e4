// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
)

func TestTheConfigurationOfTheDemoIsValidAndKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	for _, changed := range []string{"", "\n[limits]\nmax_duration = 1d\n"} {
		got, _, err := (&demonstration{folder: folder}).furnish()
		if err != nil || got != folder {
			t.Fatalf("the folder is %q, %v", got, err)
		}
		path := filepath.Join(folder, "almanac.conf")
		raw, err := os.ReadFile(path)
		if err != nil || changed != "" && !strings.Contains(string(raw), "max_duration") {
			t.Errorf("a second run has replaced the configuration: %v\n%s", err, raw)
		}
		cfg, err := config.Load([]string{path}, nil, nil)
		if err == nil {
			err = app.Check(cfg)
		}
		if err != nil || cfg.Inventory.HostsFile != filepath.Join(folder, "hosts.yaml") {
			t.Errorf("the configuration names the hosts file %s: %v", cfg.Inventory.HostsFile, err)
		}
		if err := os.WriteFile(path, append(raw, "\n[limits]\nmax_duration = 1d\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATemporaryFolderIsGoneAfterTheDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, remove, err := (&demonstration{}).furnish()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "hosts.yaml")); err != nil {
		t.Error(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

func TestADemoTakesNoOtherConfiguration(t *testing.T) {
	command := newCommand(&service{})
	command.SetArgs([]string{"demo", "--config-file", "almanac.conf"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--folder") {
		t.Errorf("got %v", err)
	}
}
