// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Machine is the state of a host from which the switch plan is made.
type Machine struct {
	Name  string `json:"name"`
	Phase Phase  `json:"phase,omitempty"`
	// Busy is true if the host has instances, or other work in progress. Only Awake hosts can be
	// busy.
	Busy bool `json:"busy,omitempty"`
	// Closed is true if the host accepts no instances although it is Awake: its service is down, or
	// an operator has disabled it. Without work, such a host does not count as on.
	Closed bool `json:"closed,omitempty"`
	// Idle is for how many consecutive measurements the host has been idle.
	Idle int `json:"idle,omitempty"`

	Zone       string          `json:"zone,omitempty"`
	Aggregates []string        `json:"aggregates,omitempty"`
	Traits     []string        `json:"traits,omitempty"`
	Capacity   resource.Vector `json:"capacity"`

	// FlopsPerWatt is the efficiency of the host; 0 means unknown, and counts as the least
	// efficient.
	FlopsPerWatt float64 `json:"flops_per_watt,omitempty"`
	Draw         Draw    `json:"draw,omitzero"`
	BootSeconds  int64   `json:"boot_seconds,omitempty"` // the 95th percentile of its boots
	States       []State `json:"states,omitempty"`       // the states that its driver can set; none if no agent can switch it

	// Claimed is the start of the host's first claim that has not ended, also if it has started;
	// span.Forever if there is none.
	Claimed span.Instant `json:"claimed,omitempty"`

	// Stays is the reason, as a sentence, why the host must not be switched off even if the rules
	// allow it: for example, it is not admitted, it has not passed a wake test, or its mode is
	// observe. "" if there is none.
	Stays string `json:"stays,omitempty"`
	// Stuck is the reason, as a sentence, why the host cannot be switched on; "" if it can.
	Stuck string `json:"stuck,omitempty"`

	Hold     *Hold        `json:"hold,omitempty"`    // the last manual order, until it is released
	LastOn   span.Instant `json:"last_on,omitempty"` // when it was last switched on, by Almanac or not; 0 is unknown
	LastOff  span.Instant `json:"last_off,omitempty"`
	Switches int          `json:"switches,omitempty"` // number within the last day
}

// Draw is the power that a machine uses, in watts; 0 means unknown.
type Draw struct {
	Idle       float64 `json:"idle,omitempty"`
	Full       float64 `json:"full,omitempty"`
	Standby    float64 `json:"standby,omitempty"`
	Off        float64 `json:"off,omitempty"`
	BootJoules float64 `json:"boot_joules,omitempty"` // energy of a boot, with the shutdown before it
}

// Phase is the state of a host for the energy controller.
type Phase string

// The phases of a host. It goes from Awake through Draining and Stopping to Asleep, and back
// through Waking. The empty Phase means Awake.
const (
	Awake    Phase = ""
	Draining Phase = "draining" // closed to new instances until it has proved empty
	Stopping Phase = "stopping" // ordered off
	Asleep   Phase = "asleep"
	Waking   Phase = "waking" // ordered on, or found on; not open yet
	Failed   Phase = "failed" // did not wake; an operator has to look at it
)

// Word returns the name of the phase, "awake" for Awake.
func (p Phase) Word() string { return cmp.Or(string(p), "awake") }

// PhaseWords are the names of all phases.
var PhaseWords = []string{Awake.Word(), string(Draining), string(Stopping), string(Asleep), string(Waking), string(Failed)}

// Counts reports whether a host in the phase is on, or will soon be (Res_on of the paper).
func (p Phase) Counts() bool { return p == Awake || p == Waking }

// ManualAction is what an operator orders for a host.
type ManualAction string

// The manual actions.
const (
	HoldOn      ManualAction = "on"
	HoldOff     ManualAction = "off"
	HoldStandby ManualAction = "standby"
	Release     ManualAction = "release" // return the host to the plan
	Test        ManualAction = "test"    // switch it off and on once, to check that it wakes
)

// Hold is a manual order. It overrides the plan until it ends or an operator releases it.
type Hold struct {
	Action ManualAction `json:"action"` // HoldOn, HoldOff, HoldStandby or Test
	Reason string       `json:"reason,omitempty"`
	By     string       `json:"by"` // the user's id
	At     span.Instant `json:"at"`
	Until  span.Instant `json:"until,omitempty"` // 0 is without end
}

// Holds reports whether the order applies at now.
func (h *Hold) Holds(now span.Instant) bool {
	return h != nil && (h.Until == 0 || now < h.Until)
}

// Mode is how much the controller may do with a host.
type Mode string

// The modes, the least first. In every mode the controller wakes a host that it has
// switched off when a reservation needs it.
const (
	ModeOff       Mode = "off"       // no measurements
	ModeObserve   Mode = "observe"   // measurements and forecasts
	ModeRecommend Mode = "recommend" // also plans, which an operator approves
	ModeAuto      Mode = "auto"
)

// Modes lists all modes, from the one that allows the least to the one that allows the most.
var Modes = []Mode{ModeOff, ModeObserve, ModeRecommend, ModeAuto}
