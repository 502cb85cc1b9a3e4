// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// BreakEven returns for how many seconds a machine must be off to save energy compared with idling:
// the energy of a boot divided by the watts that being off saves. It is +Inf if being off saves
// nothing; known is false if the power is unknown.
func (d *Draw) BreakEven() (seconds float64, known bool) {
	switch {
	case d.Idle <= 0 || d.Off <= 0 || d.BootJoules <= 0:
		return 0, false
	case d.Idle <= d.Off:
		return math.Inf(1), true
	}
	return d.BootJoules / (d.Idle - d.Off), true
}

// depth returns the state in which a machine should spend the idle time that is expected until it
// is woken for its first claim. It returns On and the reason if no other state saves energy. It
// never returns a state that the driver cannot set.
func (r *Rules) depth(m *Machine, now span.Instant) (State, string) {
	expected := int64(span.Forever)
	if at := r.WakeAt(m); at != span.Forever {
		expected = int64(at - now)
	}
	least := r.MinOff + m.BootSeconds
	if expected < least {
		return On, fmt.Sprintf("a reservation needs it within %v, and switching off pays only for %v or longer", seconds(expected), seconds(least))
	}
	even, known := m.Draw.BreakEven()
	worthOff := !known || float64(expected) >= even
	switch {
	case worthOff && slices.Contains(m.States, Off):
		return Off, ""
	case slices.Contains(m.States, Standby) && (worthOff || m.Draw.Standby > 0 && m.Draw.Standby < m.Draw.Idle):
		return Standby, ""
	case worthOff:
		return On, "its driver can neither switch it off nor put it on standby"
	case math.IsInf(even, 1):
		return On, "it would save nothing: its machine uses as much power when it is off as when it is idle"
	default:
		return On, fmt.Sprintf("a reservation needs it within %v, and a boot costs as much energy as %v of idling", seconds(expected), seconds(int64(even)))
	}
}

func seconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
}
