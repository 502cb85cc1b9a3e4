// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
)

func TestOnlyAHostWhosePropertyIsFalseIsForbidden(t *testing.T) {
	a := energy.Admission{Aggregates: []string{"rack"}, Property: "managed"}
	for name, test := range map[string]struct {
		set                map[string]inventory.Value
		refused, forbidden bool
	}{
		"without it":    {nil, true, false},
		"true":          {map[string]inventory.Value{"managed": inventory.BoolValue(true)}, false, false},
		"false":         {map[string]inventory.Value{"managed": inventory.BoolValue(false)}, true, true},
		"false in word": {map[string]inventory.Value{"managed": inventory.StringValue("false")}, true, true},
	} {
		h := &inventory.Host{Properties: test.set}
		if got := a.Refuses(h) != ""; got != test.refused {
			t.Errorf("%s: refused %v", name, got)
		}
		h.Aggregates = []string{"rack"}
		if got := a.Refuses(h) != ""; got != test.forbidden {
			t.Errorf("%s, in an aggregate: refused %v", name, got)
		}
		if got := a.Forbids(h) != ""; got != test.forbidden {
			t.Errorf("%s: forbidden %v", name, got)
		}
	}
}

func TestTheControllerRestsWhereNobodyWantsAnything(t *testing.T) {
	for name, test := range map[string]struct {
		record energy.Record
		rests  bool
	}{
		"awake":                   {energy.Record{}, true},
		"its mode is off":         {energy.Record{Mode: energy.ModeOff}, true},
		"its mode is auto":        {energy.Record{Mode: energy.ModeAuto}, false},
		"asleep":                  {energy.Record{Phase: energy.Asleep}, false},
		"held":                    {energy.Record{Hold: &energy.Hold{Action: energy.HoldOn}}, false},
		"held for a while":        {energy.Record{Hold: &energy.Hold{Action: energy.HoldOn, Until: noon + 1}}, false},
		"held until now":          {energy.Record{Hold: &energy.Hold{Action: energy.HoldOn, Until: noon}}, true},
		"awake, and closed by us": {energy.Record{Operation: "op"}, false},
	} {
		s := energy.Settings{}
		if got := s.Rests(noon, energy.ModeOff, map[string]energy.Record{"a": test.record}); got != test.rests {
			t.Errorf("%s: it rests: %v", name, got)
		}
	}
}
