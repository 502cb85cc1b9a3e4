// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestAHostIsAwakeAfterItsBootTimeUnlessItRunsOrFailed(t *testing.T) {
	const now = span.Instant(1000)
	for power, want := range map[inventory.Power]struct{ well, inTrouble span.Instant }{
		inventory.PowerOn:       {1000, span.Forever},
		inventory.PowerSleeping: {1180, 1180},
		inventory.PowerWaking:   {1180, 1180},
		inventory.PowerFailed:   {span.Forever, span.Forever},
		"":                      {1000, span.Forever},
	} {
		for trouble, want := range map[string]span.Instant{"": want.well, "it is disabled": want.inTrouble} {
			h := inventory.Host{Power: power, Problem: trouble, BootSeconds: 180}
			if got := h.AwakeAt(now); got != want {
				t.Errorf("power %q, trouble %q: awake at %d, want %d", power, trouble, got, want)
			}
			if got, failed := h.Failure(), want == span.Forever; (got != "") != failed {
				t.Errorf("power %q, trouble %q: got failure %q", power, trouble, got)
			}
		}
	}
}

func TestFreeIsWhatGuestsLeave(t *testing.T) {
	h := inventory.Host{
		Capacity: resource.Vector{VCPUs: 32, MemoryMB: 65536, DiskGB: 100, Custom: map[string]int64{"CUSTOM_FPGA": 2}},
		Used:     resource.Vector{VCPUs: 4, MemoryMB: 1024, Custom: map[string]int64{"CUSTOM_FPGA": 1}},
	}
	want := resource.Vector{VCPUs: 28, MemoryMB: 64512, DiskGB: 100, Custom: map[string]int64{"CUSTOM_FPGA": 1}}
	if got := h.Free(); !got.Equal(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
