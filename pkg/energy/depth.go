package energy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// BreakEven is for how many seconds a machine must be off so that less energy is taken
// than if it had stayed on idle: the energy of a boot over the watts saved. +Inf where
// being off saves nothing, and false where the draw is not known.
func (d *Draw) BreakEven() (seconds float64, known bool) {
	switch {
	case d.Idle <= 0 || d.Off <= 0 || d.BootJoules <= 0:
		return 0, false
	case d.Idle <= d.Off:
		return math.Inf(1), true
	}
	return d.BootJoules / (d.Idle - d.Off), true
}

// depth gives the state in which a machine should wait out its idle time, expected until
// it is woken for its first claim; On, with why, where no other is worth it. A state that
// its driver lacks is never given.
func (r *Rules) depth(m *Machine, now span.Instant) (State, string) {
	expected := int64(span.Forever)
	if at := r.WakeAt(m); at != span.Forever {
		expected = int64(at - now)
	}
	least := r.MinOff + m.BootSeconds
	if expected < least {
		return On, fmt.Sprintf("it will be woken for a reservation within %v, and being off is worth %v at least", seconds(expected), seconds(least))
	}
	even, known := m.Draw.BreakEven()
	worthOff := !known || float64(expected) >= even
	switch {
	case worthOff && slices.Contains(m.States, Off):
		return Off, ""
	case slices.Contains(m.States, Standby) && (worthOff || m.Draw.Standby > 0 && m.Draw.Standby < m.Draw.Idle):
		return Standby, ""
	case worthOff:
		return On, "its driver has no state to wait in"
	case math.IsInf(even, 1):
		return On, "it would save nothing: its machine takes as much when it is off as when it is idle"
	default:
		return On, fmt.Sprintf("it will be woken for a reservation within %v, and a boot costs as much energy as %v of idling", seconds(expected), seconds(int64(even)))
	}
}

func seconds(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
}
