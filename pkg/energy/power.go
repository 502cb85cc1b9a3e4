package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// State is the power state of a host's machine.
type State string

// The power states. The empty State is one that nobody knows.
const (
	On      State = "on"
	Standby State = "standby" // wakes faster than from off, and takes more power
	Off     State = "off"
)

// States are all that a machine can be told to have.
var States = []State{On, Standby, Off}

// Order tells the agent that can switch a host to bring its machine to a state.
type Order struct {
	ID string `json:"id"` // an agent carries out an id once, however often it is sent
	// Epoch is the epoch of the lease of the controller that sent the order. Number grows
	// with each order for the host: an agent refuses an order older than its last one.
	Epoch  int64  `json:"epoch"`
	Number int64  `json:"number"`
	Host   string `json:"host"`
	State  State  `json:"state"`
	// Hard allows the agent to cut the power of a machine that does not stop within
	// Patience seconds, and to power-cycle one that hangs while it boots.
	Hard     bool  `json:"hard,omitempty"`
	Patience int64 `json:"patience,omitempty"`
	// Deadline is the last instant at which the agent may begin.
	Deadline span.Instant `json:"deadline"`
}

// Progress is how far an order is.
type Progress string

// How far an order can be. The empty Progress says that its agent has not answered yet.
const (
	OrderAccepted Progress = "accepted" // under way
	OrderDone     Progress = "done"     // the machine says that it has the state
	OrderFailed   Progress = "failed"
	OrderRefused  Progress = "refused" // nothing was done
)

// Outcome is what an agent says of an order.
type Outcome struct {
	Progress Progress `json:"progress"`
	Reason   string   `json:"reason,omitempty"` // why it failed or was refused, a sentence
}

// Reading is what an agent says of a machine.
type Reading struct {
	Host  string  `json:"host"`
	State State   `json:"state,omitempty"` // "" is not known
	Watts float64 `json:"watts,omitempty"` // present draw; 0 is not known
	// Untouchable is the reason why nobody may switch the machine now, a sentence: its
	// owner works on it, or has forbidden it.
	Untouchable string       `json:"untouchable,omitempty"`
	Problem     string       `json:"problem,omitempty"` // why it could not be read, a sentence
	At          span.Instant `json:"at"`
}

// Access is how an agent can switch a host.
type Access struct {
	Host   string  `json:"host"`
	Agent  string  `json:"-"`      // its name, which its announcement has once
	Driver string  `json:"driver"` // "ironic", "redfish", …
	States []State `json:"states"` // that it can bring the machine to; On and Off at least
}

// Reaches says that the state is among those that the agent can bring the machine to.
func (a *Access) Reaches(state State) bool {
	for _, s := range a.States {
		if s == state {
			return true
		}
	}
	return false
}
