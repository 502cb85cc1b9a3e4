// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestSettingsOfEnergyThatCannotWorkAreRefused(t *testing.T) {
	table := filepath.Join(t.TempDir(), "watts.csv")
	if err := os.WriteFile(table, []byte("host,flops_per_watt\nn1,fast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(c *config.Config){
		"roles":           func(c *config.Config) { c.Default.Roles = []string{"energy", "inventory"} },
		"efficiency_file": func(c *config.Config) { c.Energy.EfficiencyFile = "not-there.csv" },
		"line 2":          func(c *config.Config) { c.Energy.EfficiencyFile = table },
		"watts_query":     func(c *config.Config) { c.Energy.WattsURL = "http://prometheus" },
	} {
		c, err := config.Load(nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkEnergy(c); err != nil {
			t.Fatalf("the defaults are refused: %v", err)
		}
		change(&c)
		if err := checkEnergy(c); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// phases are stored records.
type phases map[string]energy.Record

func (p phases) PowerRecords(context.Context) (map[string]energy.Record, error) { return p, nil }

func TestTheInventoryIsToldWhatSleepsAndHowEfficientHostsAre(t *testing.T) {
	table, err := energy.ReadTable(strings.NewReader("host,flops_per_watt,idle_watts\nn1,3e9,\nn*,1e9,95\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := powers{
		records: phases{"n1": {Phase: energy.Asleep, Boots: []int64{100, 140}}, "n2": {Phase: energy.Failed, Reason: "it did not wake up"}},
		table:   table, boot: 600, margin: 60, now: func() span.Instant { return 1000 },
	}
	got, err := p.PowerSettings(t.Context(), []string{"n1", "n2", "m3"})
	want := map[string]inventory.PowerSetting{
		"n1": {Power: inventory.PowerSleeping, BootSeconds: 140, BootOtherwise: 600, WakeDelay: 60, FlopsPerWatt: 3e9},
		"n2": {Power: inventory.PowerFailed, Problem: "it did not wake up", BootOtherwise: 600, FlopsPerWatt: 1e9},
		"m3": {BootOtherwise: 600},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAProcessWithoutTheInventoryReadsTheHostsWhenTheyChangeHereOrThere(t *testing.T) {
	c, err := config.Load(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Default.Roles = []string{config.RoleAPI, config.RoleEnergy}
	synctest.Test(t, func(t *testing.T) {
		source, _, err := openSource(process{config: c, log: slog.New(slog.DiscardHandler)}, &bus{}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		changed := func() bool {
			synctest.Wait()
			select {
			case <-source.changed[0]:
				return true
			default:
				return false
			}
		}
		if source.changed.poke(); !changed() {
			t.Error("what this process has switched is not read")
		}
		there := make(chan struct{}, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = relay("changes", there, source.changed.poke).run(ctx) }()
		if changed() {
			t.Error("nothing has changed, and the hosts are read")
		}
		if there <- struct{}{}; !changed() {
			t.Error("what others have seen is not read")
		}
	})
}

func TestAStopFileThatNobodyCanLookAtStopsToo(t *testing.T) {
	here := filepath.Join(t.TempDir(), "stop")
	if got := stopFile(here, "stop"); got != "" {
		t.Errorf("without the file: %q", got)
	}
	if err := os.WriteFile(here, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := stopFile(here, "stop"); got == "" {
		t.Error("the file is there, and nothing stops")
	}
	if got := stopFile(filepath.Join(here, "below"), "stop/below"); got == "" {
		t.Error("the file cannot be checked, and nothing stops")
	}
}
