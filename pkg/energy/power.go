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
	ID string // the same order twice is carried out once
	// Epoch is that of the lease of the controller that gave the order, and Number grows
	// with each order for the host: an agent refuses what is older than what it has had.
	Epoch, Number int64
	Host          string
	State         State
	// Hard lets the agent cut the power where the operating system has not stopped
	// within Patience seconds, and take it away and give it back to one that hangs while
	// it boots.
	Hard     bool
	Patience int64
	// Deadline is until when the agent may begin with it.
	Deadline span.Instant
}

// Progress is how far an order is.
type Progress string

// How far an order can be. The empty Progress says that its agent has not answered yet.
const (
	Accepted Progress = "accepted" // under way
	Done     Progress = "done"     // the machine says that it has the state
	Failed   Progress = "failed"
	Refused  Progress = "refused" // nothing was done
)

// Outcome is what an agent says of an order.
type Outcome struct {
	Progress Progress
	Reason   string // why it failed or was refused, a sentence
}

// Reading is what an agent says of a machine.
type Reading struct {
	Host  string
	State State   // "" is not known
	Watts float64 // that it takes now; 0 is not known
	// Untouchable says why nobody may switch the machine now, in a sentence: its owner
	// works on it, or has forbidden it.
	Untouchable string
	Problem     string // why it could not be read, a sentence
	At          span.Instant
}

// Access is how an agent can switch a host.
type Access struct {
	Host   string
	Agent  string  // its name
	Driver string  // "ironic", "redfish", …
	States []State // that it can bring the machine to; On and Off at least
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
