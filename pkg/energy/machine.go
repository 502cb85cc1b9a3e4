package energy

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Machine is a host as the switch plan sees it.
type Machine struct {
	Name string
	// Phase is where the host stands between on and off.
	Phase Phase
	// Busy says that it has guests, or that something is under way on it. Only hosts that
	// are Awake can be.
	Busy bool
	// Closed says that it takes no instances though it is Awake: its service is down, or an
	// operator has disabled it. Without work it is of no use, and does not count as on.
	Closed bool
	// Idle is for how many measurements without a break it has been idle.
	Idle int

	Zone               string
	Aggregates, Traits []string
	Capacity           resource.Vector

	// FlopsPerWatt is its efficiency; 0 is unknown and counts as the least.
	FlopsPerWatt float64
	Draw         Draw
	BootSeconds  int64   // the 95th percentile of its boots
	States       []State // that its driver has; none where no agent can switch it

	// Claimed is the start of its first claim that has not ended: at or before now where
	// one runs, span.Forever where it has none.
	Claimed span.Instant

	// Stays says why it must not be switched off whatever the rules say, in a sentence:
	// it is not admitted, its wake test is missing, its mode is observe …
	Stays string
	// Stuck says why it cannot be switched on.
	Stuck string

	Hold     *Hold        // a manual order that has not been released
	LastOn   span.Instant // when it was last switched on, by whomever; 0 unknown
	LastOff  span.Instant
	Switches int // within the last day
}

// Draw is the power that a machine takes, in watts; 0 is unknown.
type Draw struct {
	Idle, Full, Standby, Off float64
	BootJoules               float64 // for a boot, with the shutdown before it
}

// Phase is where a host stands between on and off.
type Phase string

// The phases. A host goes from Awake through Leaving and Stopping to Asleep, and through
// Waking back. The empty Phase is Awake.
const (
	Awake    Phase = ""
	Leaving  Phase = "leaving"  // closed to new instances, and watched for a while
	Stopping Phase = "stopping" // ordered off
	Asleep   Phase = "asleep"
	Waking   Phase = "waking" // ordered on, or found on: not open yet
	Broken   Phase = "broken" // did not wake; an operator has to look
)

// Counts says that a host in the phase is, or soon will be, one that is on (Res_on).
func (p Phase) Counts() bool { return p == Awake || p == Waking }

// Action is what an operator orders of a host by hand.
type Action string

// The actions.
const (
	HoldOn      Action = "on"
	HoldOff     Action = "off"
	HoldStandby Action = "standby"
	Release     Action = "release" // leave the host to the plan again
	Test        Action = "test"    // switch it off and on once, to see whether it wakes
)

// Hold is a manual order. It wins over the plan until it is released or over.
type Hold struct {
	Action Action // HoldOn, HoldOff, HoldStandby or Test
	Reason string
	By     string       // the user's id
	At     span.Instant // when it was given
	Until  span.Instant // 0 is for ever
}

// Holds says that h is in force at now.
func (h *Hold) Holds(now span.Instant) bool {
	return h != nil && (h.Until == 0 || now < h.Until)
}

// Mode is how much the controller may do with a host.
type Mode string

// The modes, the least first. In all of them a host that the controller has switched off
// is woken when a reservation needs it.
const (
	ModeOff       Mode = "off"       // nothing is measured
	ModeObserve   Mode = "observe"   // counted and forecast
	ModeRecommend Mode = "recommend" // plans are made, and carried out once approved
	ModeAuto      Mode = "auto"
)

// Modes are all of them, the least first.
var Modes = []Mode{ModeOff, ModeObserve, ModeRecommend, ModeAuto}
