// SPDX-License-Identifier: Apache-2.0

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

// DiskWeigher prefers hosts with much free disk, without overcommitment
// (nova/scheduler/weights/disk.py).
type DiskWeigher struct{ missing fixed[missingDisk] }

func (*DiskWeigher) Name() string { return "DiskWeigher" }

// Weigh sets the free disk in MiB, less what is missing on the host itself; it is negative on
// an overcommitted host.
func (w *DiskWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c, missing := s.Column("DISK_GB"), w.missing.get(s)
	all := 0.0
	if len(missing) == 1 {
		all, missing = missing[0], nil
	}
	for k, i := range hosts {
		raw[k] = float64((c.Real[i]-c.Used[i])*1024) - all
	}
	if missing != nil {
		for k, i := range hosts {
			raw[k] -= missing[i]
		}
	}
}

type missingDisk struct{}

func (missingDisk) of(h *inventory.HostState) float64 {
	return float64(h.DiskMissing) * 1024
}
