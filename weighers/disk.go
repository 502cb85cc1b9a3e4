package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// DiskWeigher prefers hosts with much free disk, overcommitment not counted
// (nova/scheduler/weights/disk.py). Placement does not know disk_available_least, which
// is smaller where images are cached on the host or instances have grown.
type DiskWeigher struct{}

// Name is the weigher's name.
func (DiskWeigher) Name() string { return "DiskWeigher" }

// Weigh gives free disk in MiB; it is negative where more is given away than there is.
func (DiskWeigher) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	c := s.Column("DISK_GB")
	for k, i := range hosts {
		raw[k] = float64((c.Real[i] - c.Used[i]) * 1024)
	}
}
