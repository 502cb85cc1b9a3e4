package inventory_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestAHostIsAwakeAfterItsBootTimeUnlessItRunsOrFailed(t *testing.T) {
	const now = span.Instant(1000)
	for power, want := range map[inventory.Power]span.Instant{
		inventory.PowerOn:       1000,
		inventory.PowerSleeping: 1180,
		inventory.PowerWaking:   1180,
		inventory.PowerFailed:   span.Forever,
		"":                      1000,
	} {
		h := inventory.Host{Power: power, BootSeconds: 180}
		if got := h.AwakeAt(now); got != want {
			t.Errorf("power %q: awake at %d, want %d", power, got, want)
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
