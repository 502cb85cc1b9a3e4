// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// fact is a number of a host that no placement changes, such as a version.
type fact interface {
	of(h *inventory.HostState) float64
}

// fixed is a weigher whose raw weight is a fact. It computes the facts once for each set of hosts.
type fixed[F fact] struct{ kept atomic.Pointer[numbers] }

// numbers are the values of all hosts of states, in their order; only one if all are equal.
type numbers struct {
	states *inventory.States
	values []float64
}

// get returns a number for each host that does not change with its use; a single one if all are equal.
// They are kept for as long as the hosts are the same.
func (f *fixed[F]) get(s *inventory.States) []float64 {
	if kept := f.kept.Load(); kept != nil && s.SameHosts(kept.states) {
		return kept.values
	}
	var number F
	values, differ := make([]float64, s.Len()), false
	for i := range values {
		values[i] = number.of(s.Host(i))
		differ = differ || values[i] != values[0]
	}
	if !differ {
		values = values[:min(1, len(values))]
	}
	f.kept.Store(&numbers{s, values})
	return values
}

// Indifferent reports whether all hosts have the same value.
func (f *fixed[F]) Indifferent(s *inventory.States, _ *placing.Request) bool {
	return len(f.get(s)) < 2
}

// Weigh sets the values.
func (f *fixed[F]) Weigh(s *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	values := f.get(s)
	if len(values) == 1 {
		for k := range raw {
			raw[k] = values[0]
		}
		return
	}
	for k, i := range hosts {
		raw[k] = values[i]
	}
}

// BuildFailureWeigher counts the builds that failed on a host since the last success
// (nova/scheduler/weights/compute.py). Its multiplier is negated and large, so that such a host
// is chosen last.
type BuildFailureWeigher struct{ fixed[failedBuilds] }

func (*BuildFailureWeigher) Name() string { return "BuildFailureWeigher" }

type failedBuilds struct{}

func (failedBuilds) of(h *inventory.HostState) float64 {
	return float64(h.FailedBuilds)
}

// HypervisorVersionWeigher prefers hosts with a new hypervisor, so that instances leave the old
// ones during an upgrade (nova/scheduler/weights/hypervisor_version.py). A version is Nova's
// number, 1002003 for 1.2.3; 0 means unknown.
type HypervisorVersionWeigher struct{ fixed[hypervisorVersion] }

func (*HypervisorVersionWeigher) Name() string { return "HypervisorVersionWeigher" }

type hypervisorVersion struct{}

func (hypervisorVersion) of(h *inventory.HostState) float64 {
	return float64(h.HypervisorVersion)
}

// PCIWeigher keeps hosts with free PCI devices for the instances that need some
// (nova/scheduler/weights/pci.py): the raw weight is 100 minus the number of free devices, and at
// most 99 of them count. Almanac does not weigh requests for such instances.
type PCIWeigher struct{ fixed[pciDevices] }

// mostDevices is the number of devices beyond which more make no difference.
const mostDevices = 99

func (*PCIWeigher) Name() string { return "PCIWeigher" }

type pciDevices struct{}

func (pciDevices) of(h *inventory.HostState) float64 {
	return float64(mostDevices + 1 - min(h.PCIDevices, mostDevices))
}
