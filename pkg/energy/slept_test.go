// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestAHostHasSleptBetweenTheEntriesOfTheAudit(t *testing.T) {
	entry := func(at span.Instant, phase energy.Phase) energy.Entry {
		return energy.Entry{At: at, Host: "h", Kind: energy.EntryPhase, Text: phase.Word() + ": because"}
	}
	window, now := span.Span{Start: 100, End: 200}, span.Instant(180)
	for name, test := range map[string]struct {
		entries []energy.Entry
		record  energy.Record
		want    []span.Span
	}{
		"a night":               {[]energy.Entry{entry(110, energy.Draining), entry(120, energy.Asleep), entry(150, energy.Waking), entry(155, energy.Awake)}, energy.Record{}, []span.Span{{Start: 120, End: 150}}},
		"until now":             {[]energy.Entry{entry(120, energy.Asleep)}, energy.Record{Phase: energy.Asleep, Since: 120}, []span.Span{{Start: 120, End: 180}}},
		"since before":          {[]energy.Entry{entry(130, energy.Waking), entry(131, energy.Awake)}, energy.Record{}, []span.Span{{Start: 100, End: 130}}},
		"all the time":          {nil, energy.Record{Phase: energy.Asleep, Since: 50}, []span.Span{{Start: 100, End: 180}}},
		"asleep after the time": {[]energy.Entry{entry(250, energy.Asleep)}, energy.Record{Phase: energy.Asleep, Since: 250}, nil},
		"twice":                 {[]energy.Entry{entry(110, energy.Asleep), entry(120, energy.Waking), entry(130, energy.Asleep), entry(140, energy.Failed)}, energy.Record{}, []span.Span{{Start: 110, End: 120}, {Start: 130, End: 140}}},
		"failed before":         {[]energy.Entry{entry(90, energy.Failed), entry(150, energy.Waking), entry(155, energy.Awake)}, energy.Record{}, nil},
		"asleep before":         {[]energy.Entry{entry(90, energy.Asleep), entry(150, energy.Failed)}, energy.Record{}, []span.Span{{Start: 100, End: 150}}},
		"awake":                 {[]energy.Entry{entry(110, energy.Draining), entry(120, energy.Awake)}, energy.Record{}, nil},
		"other entries":         {[]energy.Entry{{At: 120, Host: "h", Kind: energy.EntryOrder, Text: "asleep: ordered"}}, energy.Record{}, nil},
	} {
		got := energy.Slept(window, now, test.entries, map[string]energy.Record{"h": test.record})
		if diff := cmp.Diff(test.want, got["h"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
