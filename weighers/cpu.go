package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CPUWeigher prefers hosts with many free virtual CPUs, counted with the overcommitment
// that the host allows (nova/scheduler/weights/cpu.py). Placement takes reserved CPUs
// away before it multiplies, where Nova does after; Placement's is what can be had.
type CPUWeigher struct{}

// Name is the weigher's name.
func (CPUWeigher) Name() string { return "CPUWeigher" }

// Weigh gives free virtual CPUs.
func (CPUWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c := s.Column("VCPU")
	weighFree(c.Limit, c.Used, hosts, raw)
}

// weighFree gives what used leaves of have.
func weighFree(have, used []int64, hosts []int, raw []float64) {
	for k, i := range hosts {
		raw[k] = float64(have[i] - used[i])
	}
}
