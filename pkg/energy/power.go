// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// State is the power state of a host's machine.
type State string

// The empty State means unknown.
const (
	On      State = "on"
	Standby State = "standby" // wakes faster than off, and draws more power
	Off     State = "off"
)

// States lists the states that an order can name.
var States = []State{On, Standby, Off}

// Order is a power order: it asks an agent to bring the machine of a host to a state.
type Order struct {
	ID string `json:"id"` // an agent carries out each id once, even if it receives it again
	// Epoch is the epoch of the lease of the controller that sent the order. Number increases with
	// each order for the host: an agent refuses an order with a smaller number than its last one.
	Epoch  int64  `json:"epoch"`
	Number int64  `json:"number"`
	Host   string `json:"host"`
	State  State  `json:"state"`
	// Hard allows the agent to cut the power of a machine that does not stop within
	// Patience seconds, and to power-cycle a machine that hangs during its boot.
	Hard     bool  `json:"hard,omitempty"`
	Patience int64 `json:"patience,omitempty"`
	// Deadline is the last instant at which the agent may begin.
	Deadline span.Instant `json:"deadline"`
}

// Progress is how far the agent has come with an order.
type Progress string

// The empty Progress means that the agent has not answered yet.
const (
	OrderAccepted Progress = "accepted" // under way
	OrderDone     Progress = "done"     // the machine reports the state
	OrderFailed   Progress = "failed"
	OrderRefused  Progress = "refused" // the agent did nothing
)

// Outcome is what an agent reports about an order.
type Outcome struct {
	Progress Progress `json:"progress"`
	Reason   string   `json:"reason,omitempty"` // why it failed or was refused, as a sentence
}

// Reading is what an agent reports about a machine.
type Reading struct {
	Host  string  `json:"host"`
	State State   `json:"state,omitempty"` // "" is unknown
	Watts float64 `json:"watts,omitempty"` // present power; 0 is unknown
	// Untouchable is the reason, as a sentence, why the machine must not be switched now: somebody
	// works on it or has forbidden it. "" if there is none.
	Untouchable string       `json:"untouchable,omitempty"`
	Problem     string       `json:"problem,omitempty"` // why it could not be read, as a sentence
	At          span.Instant `json:"at"`
}

// Access describes how an agent can switch a host.
type Access struct {
	Host   string  `json:"host"`
	Agent  string  `json:"-"`      // name of the agent, sent once in its announcement
	Driver string  `json:"driver"` // "ironic", "redfish", …
	States []State `json:"states"` // the states that it can set; On and Off at least
}

// Reaches reports whether the agent can bring the machine to the state.
func (a *Access) Reaches(state State) bool {
	for _, s := range a.States {
		if s == state {
			return true
		}
	}
	return false
}
