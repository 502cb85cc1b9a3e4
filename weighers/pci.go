package weighers

import "github.com/almanac-cloud/almanac/inventory"

// PCIWeigher keeps hosts with free PCI devices for the instances that need some
// (nova/scheduler/weights/pci.py): it gives 100 less their number, of which 99 count.
// Requests for such instances are not weighed here.
type PCIWeigher struct{ fixed[pciDevices] }

// mostDevices is a number of devices from which on there may as well be more.
const mostDevices = 99

// Name is the weigher's name.
func (*PCIWeigher) Name() string { return "PCIWeigher" }

type pciDevices struct{}

func (pciDevices) of(h *inventory.HostState) float64 {
	return float64(mostDevices + 1 - min(h.PCIDevices, mostDevices))
}
