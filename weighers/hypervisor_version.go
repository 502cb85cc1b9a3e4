package weighers

import "github.com/almanac-cloud/almanac/inventory"

// HypervisorVersionWeigher prefers hosts with a new hypervisor, so that instances leave the old
// ones during an upgrade (nova/scheduler/weights/hypervisor_version.py). A version is Nova's
// number, 1002003 for 1.2.3; 0 is unknown.
type HypervisorVersionWeigher struct{ fixed[hypervisorVersion] }

func (*HypervisorVersionWeigher) Name() string { return "HypervisorVersionWeigher" }

type hypervisorVersion struct{}

func (hypervisorVersion) of(h *inventory.HostState) float64 {
	return float64(h.HypervisorVersion)
}
