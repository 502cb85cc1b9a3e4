package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CPUWeigher prefers hosts with many free virtual CPUs, including the overcommitment that the
// host allows (nova/scheduler/weights/cpu.py).
type CPUWeigher struct{}

func (CPUWeigher) Name() string { return "CPUWeigher" }

// Weigh sets the free virtual CPUs as nova-scheduler counts them: it subtracts reserved ones
// after the multiplication, Placement before it.
func (CPUWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c := s.Column("VCPU")
	for k, i := range hosts {
		raw[k] = c.Offered[i] - float64(c.Used[i])
	}
}
