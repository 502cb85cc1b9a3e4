// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

// switched holds the power settings of hosts that are switched off and on.
type switched struct {
	settings map[string]inventory.PowerSetting
	err      error
}

func (s *switched) PowerSettings(context.Context, []string) (map[string]inventory.PowerSetting, error) {
	return s.settings, s.err
}

func TestAHostThatWasPutToSleepHasNotFailedWhateverItsServicesSay(t *testing.T) {
	c := &cloud{hosts: racked("n1", "n2", "n3"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
	known := &switched{}
	o := settings(c)
	o.Powers, o.Rules = known, inventory.TrustRules{MaxChangePercent: 10, SettleTime: 600}
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}

	for i := range c.hosts[:2] {
		c.hosts[i].Problem = "its nova-compute is down"
	}
	known.settings = map[string]inventory.PowerSetting{
		"n1": {Power: inventory.PowerSleeping, BootSeconds: 240, WakeDelay: 60}, "n2": {Power: inventory.PowerWaking, FlopsPerWatt: 2e9},
		"n3": {BootSeconds: 90}, "n4": {Power: inventory.PowerSleeping},
	}
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doubt := k.Untrusted(1000); doubt != "" {
		t.Errorf("two of three hosts were switched off on purpose, but the reading is untrusted: %s", doubt)
	}
	hosts := k.Snapshot()
	if h := hosts.Host(0); h.Failure() != "" || h.AwakeAt(1000) != 1300 {
		t.Errorf("n1 sleeps and boots in 240 s with a margin of 60 s: got failure %q and awake at %d", h.Failure(), h.AwakeAt(1000))
	}
	if h := hosts.Host(1); h.Failure() != "" || h.Power != inventory.PowerWaking || h.FlopsPerWatt != 2e9 {
		t.Errorf("n2 wakes: got %+v", h)
	}
	if h := hosts.Host(2); h.Power != "" || h.BootSeconds != 90 {
		t.Errorf("n3 has only a known boot time: got %+v", h)
	}
}

func TestAHostThatDidNotWakeHasFailedAndSaysWhy(t *testing.T) {
	c := &cloud{hosts: racked("n1", "n2"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
	known := &switched{settings: map[string]inventory.PowerSetting{"n1": {Power: inventory.PowerFailed, Problem: "it did not wake up"}}}
	o := settings(c)
	o.Powers = known
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Snapshot().Host(0).Failure(); got != "it did not wake up" {
		t.Errorf("the failure is %q", got)
	}

	known.settings, known.err = nil, errors.New("the database is away")
	if err := k.Refresh(t.Context()); err == nil {
		t.Error("the reading succeeds although the power settings are unknown")
	}
	if got := k.Snapshot().Host(0).Power; got != inventory.PowerFailed {
		t.Errorf("after a reading that failed the power is %q", got)
	}
}
