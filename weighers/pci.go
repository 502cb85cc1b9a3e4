package weighers

import "github.com/almanac-cloud/almanac/inventory"

// PCIWeigher reserves hosts with free PCI devices for the instances that need some
// (nova/scheduler/weights/pci.py): it weighs 100 less their number, at most 99. Almanac
// does not weigh requests for such instances.
type PCIWeigher struct{ fixed[pciDevices] }

// mostDevices is the number of devices beyond which more make no difference.
const mostDevices = 99

func (*PCIWeigher) Name() string { return "PCIWeigher" }

type pciDevices struct{}

func (pciDevices) of(h *inventory.HostState) float64 {
	return float64(mostDevices + 1 - min(h.PCIDevices, mostDevices))
}
