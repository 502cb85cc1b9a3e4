package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// RAMWeigher prefers hosts with much free memory, overcommitment not counted
// (nova/scheduler/weights/ram.py; free_ram_mb of a compute node is what neither
// instances nor reserved_host_memory_mb take of the real memory).
type RAMWeigher struct{}

// Name is the weigher's name.
func (RAMWeigher) Name() string { return "RAMWeigher" }

// Weigh gives free memory in MiB; it is negative where more is given away than there is.
func (RAMWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c := s.Column("MEMORY_MB")
	for k, i := range hosts {
		raw[k] = float64(c.Real[i] - c.Used[i])
	}
}
