package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

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
