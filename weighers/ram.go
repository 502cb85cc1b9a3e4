package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// RAMWeigher prefers hosts with much free memory, without overcommitment
// (nova/scheduler/weights/ram.py; free_ram_mb of a compute node is the real memory less
// instances and reserved_host_memory_mb).
type RAMWeigher struct{}

func (RAMWeigher) Name() string { return "RAMWeigher" }

// Weigh sets the free memory in MiB; it is negative on an overcommitted host.
func (RAMWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c := s.Column("MEMORY_MB")
	for k, i := range hosts {
		raw[k] = float64(c.Real[i] - c.Used[i])
	}
}
