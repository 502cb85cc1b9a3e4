// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Check A004-1.
func TestCoreSecondsOfThePaper(t *testing.T) {
	total := []energy.Level{{From: 0, Cores: 10}}
	used := []energy.Level{{From: 0, Cores: 4}, {From: 10, Cores: 9}, {From: 20, Cores: 0}}
	if got := energy.ResIdle(total, used, 30); got != 170 {
		t.Errorf("res_idle is %d, want 170", got)
	}
	if got := energy.Area([]energy.Level{{From: 5, Cores: 3}, {From: 25, Cores: 0}}, 30); got != 60 {
		t.Errorf("e_savings is %d, want 60", got)
	}
	if got := energy.Area([]energy.Level{{From: 5, Cores: 3}, {From: 25, Cores: 1}}, 15); got != 30 {
		t.Errorf("%d until 15, want 30", got)
	}
}

// Check A004-2.
func TestDelayOfThePaper(t *testing.T) {
	got := energy.DelayReq([]energy.Delayed{{Cores: 8, Boot: 120, Duration: 3600}, {Cores: 4, Boot: 300, Duration: 600}, {Cores: 100, Duration: 60}, {Cores: 1, Boot: 5}})
	if math.Abs(got-2.266667) > 1e-6 {
		t.Errorf("delay_req is %v, want 2.266667", got)
	}
}

func TestSavingsAreCountedFromOneMeasurementToTheNext(t *testing.T) {
	known := func(m *energy.Machine) {
		m.Draw, m.Capacity = energy.Draw{Idle: 100, Standby: 30, Off: 10, BootJoules: 5000}, resource.Vector{VCPUs: 4}
	}
	spells := []energy.Spell{
		{Machine: new(with(asleep("off", 1), known)), State: energy.Off},
		{Machine: new(with(asleep("standby", 1), known)), State: energy.Standby},
		{Machine: new(asleep("unknown draw", 1)), State: energy.Off},
		{Machine: new(with(asleep("woken meanwhile", 1), known)), State: energy.On},
		{Machine: new(with(asleep("waking", 1), known, phase(energy.Waking))), State: energy.On, Booted: true},
		{Machine: new(with(asleep("waking of unknown draw", 1), phase(energy.Waking), func(m *energy.Machine) { m.Draw.BootJoules = 9 })), State: energy.On, Booted: true},
		{Machine: new(with(idle("idle", 3), known)), State: energy.On},
		{Machine: new(with(busy("busy"), known)), State: energy.On},
		{Machine: new(with(asleep("broken", 1), known, phase(energy.Failed)))},
	}
	var got energy.Savings
	got.Add(noon, 120, nil)
	got.Add(noon+60, 120, spells)
	want := energy.Savings{
		Since: noon, Until: noon + 60, HostSeconds: 180, CoreSeconds: 60 * 9, IdleCoreSeconds: 60 * 9,
		Joules: 60*90 + 60*70 - 5000, Unknown: 60, Boots: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	before := got.HostSeconds
	got.Add(noon+10_000, 120, spells[:1])
	if counted := got.HostSeconds - before; counted != 120 {
		t.Errorf("%d seconds are counted of a time that was not watched, want 120", counted)
	}
	got.Add(noon, 120, spells[:1])
	if got.Until != noon+10_000 || got.HostSeconds != before+120 {
		t.Errorf("a clock that is set back changes the count: %+v", got)
	}
}
