package energy

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Machine is a host as the switch plan sees it.
type Machine struct {
	Name string `json:"name"`
	// Phase is where the host stands between on and off.
	Phase Phase `json:"phase,omitempty"`
	// Busy reports that it has guests, or that something is under way on it. Only hosts
	// that are Awake can be busy.
	Busy bool `json:"busy,omitempty"`
	// Closed reports that it accepts no instances though it is Awake: its service is down,
	// or an operator has disabled it. Without work it is of no use, and does not count as on.
	Closed bool `json:"closed,omitempty"`
	// Idle is for how many measurements without a break it has been idle.
	Idle int `json:"idle,omitempty"`

	Zone       string          `json:"zone,omitempty"`
	Aggregates []string        `json:"aggregates,omitempty"`
	Traits     []string        `json:"traits,omitempty"`
	Capacity   resource.Vector `json:"capacity"`

	// FlopsPerWatt is its efficiency; 0 is unknown and counts as the least.
	FlopsPerWatt float64 `json:"flops_per_watt,omitempty"`
	Draw         Draw    `json:"draw,omitzero"`
	BootSeconds  int64   `json:"boot_seconds,omitempty"` // the 95th percentile of its boots
	States       []State `json:"states,omitempty"`       // that its driver has; none where no agent can switch it

	// Claimed is the start of its first claim that has not ended: at or before now where
	// one runs, span.Forever where it has none.
	Claimed span.Instant `json:"claimed,omitempty"`

	// Stays is why it must not be switched off whatever the rules allow, a sentence: it is
	// not admitted, its wake test is missing, its mode is observe …
	Stays string `json:"stays,omitempty"`
	// Stuck is why it cannot be switched on, a sentence.
	Stuck string `json:"stuck,omitempty"`

	Hold     *Hold        `json:"hold,omitempty"`    // a manual order that has not been released
	LastOn   span.Instant `json:"last_on,omitempty"` // when anybody last switched it on; 0 is unknown
	LastOff  span.Instant `json:"last_off,omitempty"`
	Switches int          `json:"switches,omitempty"` // within the last day
}

// Draw is the power that a machine takes, in watts; 0 is unknown.
type Draw struct {
	Idle       float64 `json:"idle,omitempty"`
	Full       float64 `json:"full,omitempty"`
	Standby    float64 `json:"standby,omitempty"`
	Off        float64 `json:"off,omitempty"`
	BootJoules float64 `json:"boot_joules,omitempty"` // for a boot, with the shutdown before it
}

// Phase is where a host stands between on and off.
type Phase string

// The phases. A host goes from Awake through Draining and Stopping to Asleep, and through
// Waking back. The empty Phase is Awake.
const (
	Awake    Phase = ""
	Draining Phase = "draining" // closed to new instances, and watched for a while
	Stopping Phase = "stopping" // ordered off
	Asleep   Phase = "asleep"
	Waking   Phase = "waking" // ordered on, or found on: not open yet
	Failed   Phase = "failed" // did not wake; an operator has to look
)

// Counts says that a host in the phase is, or soon will be, one that is on (Res_on).
func (p Phase) Counts() bool { return p == Awake || p == Waking }

// ManualAction is what an operator orders of a host by hand.
type ManualAction string

// The manual actions.
const (
	HoldOn      ManualAction = "on"
	HoldOff     ManualAction = "off"
	HoldStandby ManualAction = "standby"
	Release     ManualAction = "release" // leave the host to the plan again
	Test        ManualAction = "test"    // switch it off and on once, to see whether it wakes
)

// Hold is a manual order. It wins over the plan until it is released or over.
type Hold struct {
	Action ManualAction `json:"action"` // HoldOn, HoldOff, HoldStandby or Test
	Reason string       `json:"reason,omitempty"`
	By     string       `json:"by"` // the user's id
	At     span.Instant `json:"at"`
	Until  span.Instant `json:"until,omitempty"` // 0 is for ever
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
