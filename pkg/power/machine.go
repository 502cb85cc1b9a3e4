// Package power carries power orders over AMQP (paper 004, section 004.1). An Agent runs
// where the machines can be reached, announces which hosts it can switch, and carries out
// its orders. A Fleet is the energy controller's side of all agents.
package power

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
)

// Machine is a machine that a driver can switch. An Agent makes one call of Switch at a
// time, and calls Read also during it.
type Machine interface {
	// States are the states that it can be brought to; On and Off at least.
	States() []energy.State
	Read(ctx context.Context) (Reading, error)
	// Switch brings the machine to a state, and returns when the machine reports it. It does
	// nothing with a machine that has the state already. An error is a sentence with the
	// reason; a Denied fault means that the machine must not be switched and nothing was
	// done.
	Switch(ctx context.Context, to energy.State, how PowerOffMode) error
}

// Reading is the state of a machine.
type Reading struct {
	State energy.State // "" where it does not report one
	Watts float64      // present draw; 0 is not known
	// Untouchable is why nobody may switch it now, a sentence.
	Untouchable string
}

// PowerOffMode is how a machine is switched.
type PowerOffMode struct {
	// Patience is how long the operating system has to stop by itself. Hard allows to cut
	// the power after that, and to power-cycle a machine that is on and should boot (it
	// hangs).
	Patience time.Duration
	Hard     bool
}
