package inventory

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Power is whether a host runs. The empty Power, of a source that knows nothing
// about power, counts as PowerOn.
type Power string

// The power states.
const (
	PowerOn       Power = "on"
	PowerSleeping Power = "sleeping" // switched off on purpose
	PowerWaking   Power = "waking"   // ordered on, not up yet
	PowerFailed   Power = "failed"   // nobody knows when it will run again
)

// Powers are all of them.
var Powers = []Power{PowerOn, PowerSleeping, PowerWaking, PowerFailed}

// Host is one physical server that can hold instances.
type Host struct {
	Name     string
	Capacity resource.Vector
	Used     resource.Vector // taken by guests now
	Zone     string          // availability zone, or nothing
	// Aggregates and Traits are names, as Nova and Placement know them.
	Aggregates, Traits []string
	// Properties are all other facts about the host. A property has the same
	// Kind on every host that has it.
	Properties map[string]Value
	// Reservable says that the host is in the pool.
	Reservable bool
	Guests     int // instances running now
	// Instances are the guests one by one, sorted by ID; nil of a source that only
	// counts them.
	Instances []Instance
	// Provider is the id of the host's resource provider in Placement; empty of a
	// source that has none.
	Provider string
	// Trouble says why the host takes no instances though nobody has switched it off,
	// in a sentence such as "its nova-compute is down"; empty where it does.
	Trouble string
	Power   Power
	// BootSeconds is the time from a power-on order until the host takes instances.
	BootSeconds int64
	// WakeDelay is how many seconds beside that are counted with before a host that sleeps
	// is up: it may have to stop first, and some are kept as a margin.
	WakeDelay    int64
	FlopsPerWatt float64 // 0 is unknown
}

// Free is what guests leave of the host now.
func (h *Host) Free() resource.Vector { return h.Capacity.Sub(h.Used) }

// Failure says why the host has failed, in a sentence such as "its nova-compute is
// down"; empty where it runs, or does not on purpose.
func (h *Host) Failure() string {
	switch {
	case h.Power == PowerSleeping || h.Power == PowerWaking:
		return ""
	case h.Trouble != "":
		return h.Trouble
	case h.Power == PowerFailed:
		return "it is marked as failed"
	}
	return ""
}

// AwakeAt gives the earliest instant at which the host can run instances when it
// is needed from now on. A waking host is given its whole boot time, since the
// inventory does not know when its order was sent. Of one in trouble nobody knows
// when it will run again.
func (h *Host) AwakeAt(now span.Instant) span.Instant {
	switch {
	case h.Failure() != "":
		return span.Forever
	case h.Power == PowerSleeping || h.Power == PowerWaking:
		return now.Add(h.BootSeconds + h.WakeDelay)
	}
	return now
}
