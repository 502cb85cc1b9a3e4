// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

func TestTheConfigurationOfTheDemoIsValidAndKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	for _, changed := range []string{"", "\n[limits]\nmax_duration = 1d\n"} {
		got, _, err := (&demonstration{folder: folder, speed: 1}).furnish()
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

func TestTheTariffOfTheDemoHasAPriceForEachHourOfAYear(t *testing.T) {
	now := time.Date(2027, 3, 28, 23, 59, 59, 0, time.FixedZone("", 7200))
	curve, err := tariff.Read([]byte(demoTariff(now)))
	if err != nil {
		t.Fatal(err)
	}
	if covered := curve.Covered(span.At(now)); covered < span.At(now.AddDate(0, 0, 364)) {
		t.Errorf("from %v on the prices are known until %v", now, covered)
	}
}

func TestATemporaryFolderIsGoneAfterTheDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, remove, err := (&demonstration{speed: 1}).furnish()
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

func TestWhereTimePassesFasterTheTimesAreThoseOfAnOrdinarySite(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := &demonstration{speed: 60}
	folder, remove, err := d.furnish()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := d.configuration(folder)
	if err == nil {
		err = app.Check(cfg)
	}
	if err != nil || cfg.Reservation.Rules.LeadTime != 15*60 || cfg.Energy.Rules.SpareHosts != 2 {
		t.Errorf("the configuration has a lead time of %d s and %d spare hosts: %v", cfg.Reservation.Rules.LeadTime, cfg.Energy.Rules.SpareHosts, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}

func TestADemoRefusesASpeedThatItCannotKeep(t *testing.T) {
	for _, args := range [][]string{{"--speed", "0"}, {"--speed", "601"}, {"--speed", "60", "--folder", t.TempDir()}} {
		command := newCommand(&service{})
		command.SetArgs(append([]string{"demo"}, args...))
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "speed") {
			t.Errorf("%v: got %v", args, err)
		}
	}
}
