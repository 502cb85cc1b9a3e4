// Package power carries power orders over AMQP (paper 004, section 004.1): an Agent runs
// where the machines can be reached, announces which hosts it can switch, and carries out
// what it is ordered; a Fleet is what the energy controller has of all agents.
package power

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

// Machine is a machine that can be switched, as a driver gives it. An Agent calls Switch
// once at a time, and Read also meanwhile.
type Machine interface {
	// States are those that it can be brought to; On and Off at least.
	States() []energy.State
	Read(ctx context.Context) (Reading, error)
	// Switch brings the machine to a state, and returns when the machine says that it has
	// it. A machine that has it already is left alone. An error says why, in a sentence; a
	// Denied fault, that the machine must not be switched and nothing was done.
	Switch(ctx context.Context, to energy.State, how Manner) error
}

// Reading is how a machine is.
type Reading struct {
	State energy.State // "" where it does not tell
	Watts float64      // that it takes now; 0 is not known
	// Untouchable says why nobody may switch it now, a sentence.
	Untouchable string
}

// Manner is how a machine is switched.
type Manner struct {
	// Patience is how long the operating system gets to stop by itself; Hard lets the power
	// be cut then, and be taken from a machine that is on and told to be (it hangs).
	Patience time.Duration
	Hard     bool
}
