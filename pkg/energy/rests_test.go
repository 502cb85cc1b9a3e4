// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestAHostThatRestsIsNotChangedByAStep(t *testing.T) {
	rested := map[energy.Phase]int{}
	rapid.Check(t, func(t *rapid.T) {
		flag := func(label string) bool { return rapid.Bool().Draw(t, label) }
		seldom := func(label string) bool { return rapid.IntRange(1, 8).Draw(t, label) == 8 }
		r := energy.Record{
			Host: "h", Phase: rapid.SampledFrom([]energy.Phase{energy.Asleep, energy.Asleep, energy.Asleep, energy.Awake, energy.Awake, energy.Draining, energy.Waking, energy.Failed}).Draw(t, "phase"),
			Target: energy.Off, Operation: rapid.SampledFrom([]string{"", "operation"}).Draw(t, "operation"), Testing: seldom("testing"), Reported: span.Instant(rapid.IntRange(0, 2).Draw(t, "reported")),
			Mismatches: rapid.IntRange(0, 1).Draw(t, "mismatches"), Heartbeats: rapid.IntRange(0, 3).Draw(t, "heartbeats"), Down: flag("down"),
		}
		f := energy.Facts{
			Now: 1000, Agent: flag("agent"), Cloudless: flag("cloudless"),
			Machine: energy.Reading{Host: "h", State: rapid.SampledFrom([]energy.State{"", energy.Off, energy.Standby, energy.On}).Draw(t, "state")},
		}
		if flag("answers") {
			f.Service = &energy.ServiceFact{Up: flag("up"), Disabled: flag("disabled"), Ours: flag("ours"), Reported: span.Instant(rapid.IntRange(0, 2).Draw(t, "told"))}
		}
		if seldom("wanted") {
			f.Want = &energy.Switch{Host: "h", To: rapid.SampledFrom([]energy.State{energy.On, energy.Off}).Draw(t, "to")}
		}
		if !r.Rests(&f) {
			return
		}
		rested[r.Phase]++
		if step := energy.Advance(r, f, energy.Switching{}); !step.Nothing(&r) {
			t.Fatalf("the step changes %+v to %+v", r, step)
		}
	})
	t.Logf("hosts rested, by phase: %v", rested)
}
