// SPDX-License-Identifier: Apache-2.0

package energy_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// A host is often idle for much longer than it must be, for instance while its mode is observe.
func TestTheExplanationOfAnIdleHostIsTrueHoweverLongItIsIdle(t *testing.T) {
	for idle, want := range map[int]string{
		1:  "It has been idle for 1 measurement in a row; a plan may switch it off after 3.",
		96: "It has been idle for 96 measurements in a row; a plan may switch it off after 3.",
	} {
		m := &energy.Machine{Name: "a", Claimed: span.Forever, Idle: idle}
		if got := energy.Explain(1000, m, &energy.Record{Phase: energy.Awake}, "", energy.Rules{IdleNeeded: 3}); !slices.Contains(got, want) {
			t.Errorf("idle for %d: %q", idle, got)
		}
	}
}
