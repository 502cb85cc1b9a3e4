// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Power is the power state of a host. The empty Power, from a source that does not know power
// states, counts as PowerOn.
type Power string

// The power states.
const (
	PowerOn       Power = "on"
	PowerSleeping Power = "sleeping" // switched off on purpose
	PowerWaking   Power = "waking"   // ordered on, not up yet
	PowerFailed   Power = "failed"   // unknown when it will run again
)

// Powers lists all power states.
var Powers = []Power{PowerOn, PowerSleeping, PowerWaking, PowerFailed}

// Host is one physical server that can run instances.
type Host struct {
	Name     string          `json:"name"`
	Capacity resource.Vector `json:"capacity"`
	Used     resource.Vector `json:"used"` // by instances now
	Zone     string          `json:"zone"` // availability zone, or empty
	// Aggregates and Traits are names, as Nova and Placement know them.
	Aggregates []string `json:"aggregates"`
	Traits     []string `json:"traits"`
	// Properties are all other facts about the host. A property has the same Kind on all hosts
	// that have it.
	Properties map[string]Value `json:"properties"`
	// Reservable reports whether the host is in the pool.
	Reservable    bool `json:"reservable"`
	InstanceCount int  `json:"instance_count"` // instances running now
	// Instances are the running instances, sorted by ID; nil from a source that only counts
	// them.
	Instances []Instance `json:"instances"`
	// Provider is the id of the host's resource provider in Placement; empty from a source
	// without Placement.
	Provider string `json:"provider"`
	// Problem is the reason why the host accepts no instances although nobody has switched it
	// off, in a sentence such as "its nova-compute is down"; empty if it accepts them.
	Problem string `json:"problem"`
	Power   Power  `json:"power"`
	// BootSeconds is the time from a power-on order until the host accepts instances.
	BootSeconds int64 `json:"boot_seconds"`
	// WakeDelay, in seconds, is added to BootSeconds for a sleeping host: it may have to finish
	// switching off first, and a part is a margin. Each process adds its own.
	WakeDelay    int64      `json:"-"`
	FlopsPerWatt float64    `json:"flops_per_watt"` // 0 is unknown
	Hypervisor   Hypervisor `json:"hypervisor,omitzero"`
	// Number identifies the host in Blazar's API, from 1; 0 means that hosts have no numbers. It and
	// Capabilities come from the database, where each process reads them.
	Number       int64        `json:"-"`
	Capabilities Capabilities `json:"-"`
}

// Hypervisor is what Nova knows of the program that runs instances on a host. A source without Nova
// leaves it empty.
type Hypervisor struct {
	// Name is Nova's name of the compute node, which may differ from that of the host.
	Name string `json:"name"`
	Type string `json:"type"` // such as "QEMU"
	// Version is a number such as 1002003 for 1.2.3; 0 means unknown.
	Version int64 `json:"version"`
}

// HypervisorName returns the name of the compute node: that of the host if the source has none.
func (h *Host) HypervisorName() string { return cmp.Or(h.Hypervisor.Name, h.Name) }

// Free returns the resources that instances leave free now.
func (h *Host) Free() resource.Vector { return h.Capacity.Sub(h.Used) }

// Failure returns the reason why the host has failed, in a sentence such as "its nova-compute
// is down"; empty if it runs or was switched off on purpose.
func (h *Host) Failure() string {
	switch {
	case h.Power == PowerSleeping || h.Power == PowerWaking:
		return ""
	case h.Problem != "":
		return h.Problem
	case h.Power == PowerFailed:
		return "it is marked as failed"
	}
	return ""
}

// AwakeAt returns the earliest instant at which the host can run instances if it is needed from
// now on. A waking host gets its whole boot time, since the inventory does not know when it was
// ordered on. For a failed host it returns span.Forever.
func (h *Host) AwakeAt(now span.Instant) span.Instant {
	switch {
	case h.Failure() != "":
		return span.Forever
	case h.Power == PowerSleeping || h.Power == PowerWaking:
		return now.Add(h.BootSeconds + h.WakeDelay)
	}
	return now
}
