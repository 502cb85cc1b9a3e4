package energy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// WakeAt is when a machine is to be woken for its first claim: the horizon before it
// starts, or earlier if its boot takes longer. Forever where it has no claim, and in the
// past where the claim runs.
func (r Rules) WakeAt(m *Machine) span.Instant {
	return before(m.Claimed, max(r.Horizon, r.lead(m)))
}

// bootBy is when the machine has to be woken at the latest, so that it is up in time.
func (r *Rules) bootBy(m *Machine) span.Instant { return before(m.Claimed, r.lead(m)) }

// lead is how long before it is needed a machine has to be woken.
func (r *Rules) lead(m *Machine) int64 { return m.BootSeconds + r.BootMargin }

func before(start span.Instant, seconds int64) span.Instant {
	if start == span.Forever {
		return start
	}
	return start.Add(-max(seconds, 0))
}

// reserved says that a claim on the machine runs, or is so near that the machine must be
// on for it (Res_reserv of paper 004; what starts at the horizon is in it, E004-12).
func (r *Rules) reserved(m *Machine, now span.Instant) bool {
	at := r.WakeAt(m)
	return at != span.Forever && at <= now
}

// efficiency is what hosts are ordered by; what makes no sense is unknown.
func (m *Machine) efficiency() float64 {
	if math.IsNaN(m.FlopsPerWatt) || m.FlopsPerWatt < 0 {
		return 0
	}
	return m.FlopsPerWatt
}

// holds says that one of the manual orders is in force.
func (m *Machine) holds(now span.Instant, actions ...ManualAction) bool {
	return m.Hold.Holds(now) && slices.Contains(actions, m.Hold.Action)
}

// heldDown says that a manual order keeps the machine off, or lets it go off for a test.
func (m *Machine) heldDown(now span.Instant) bool { return m.holds(now, HoldOff, HoldStandby, Test) }

// Due gives the wakes that cannot wait for the next plan, the most pressing first: of
// hosts whose claim is near (WakeAt), and of those that an operator has ordered on. Hosts
// that are about to be switched off are among them. MostBooting puts off only those that
// would still be up in time.
func (r Rules) Due(s Situation) []Switch {
	switches, _ := r.due(&s)
	return switches
}

// due gives also why reserved hosts are not switched on that should be, by name.
func (r *Rules) due(s *Situation) (switches []Switch, hindered []Kept) {
	booting := 0
	var needed []*Machine
	for i := range s.Machines {
		m := &s.Machines[i]
		switch m.Phase {
		case Waking:
			booting++
		case Asleep, Draining:
			if r.reserved(m, s.Now) || r.orderedOn(m, s.Now) {
				needed = append(needed, m)
			}
		}
	}
	pressing := func(m *Machine) bool { return r.orderedOn(m, s.Now) || r.bootBy(m) <= s.Now }
	slices.SortFunc(needed, func(a, b *Machine) int {
		return cmp.Or(first(pressing(a), pressing(b)), cmp.Compare(a.Claimed, b.Claimed), mostEfficient(a, b))
	})
	for _, m := range needed {
		switch why := m.hindrance(s.Now); {
		case why != "":
			hindered = append(hindered, Kept{m.Name, why})
		case m.Phase == Asleep && !pressing(m) && r.MostBooting > 0 && booting >= r.MostBooting:
			hindered = append(hindered, Kept{m.Name, fmt.Sprintf("%d hosts boot already, and it will be in time still", booting)})
		default:
			switches = append(switches, Switch{Host: m.Name, To: On, Reason: r.wakeReason(m, s.Now), Urgent: true})
			if m.Phase == Asleep {
				booting++
			}
		}
	}
	return switches, hindered
}

// orderedOn says that an operator wants a host awake that is not. A wake test of a host
// that sleeps already is to wake it.
func (r *Rules) orderedOn(m *Machine, now span.Instant) bool {
	return m.holds(now, HoldOn) || m.Phase == Asleep && m.holds(now, Test)
}

// hindrance says why a machine cannot be switched on, whoever needs it.
func (m *Machine) hindrance(now span.Instant) string {
	switch {
	case m.Phase == Draining: // it is on
		return ""
	case m.holds(now, HoldOff, HoldStandby):
		return "an operator holds it off"
	case m.Stuck != "":
		return m.Stuck
	case !slices.Contains(m.States, On):
		return "no agent can switch it on"
	}
	return ""
}

func (r *Rules) wakeReason(m *Machine, now span.Instant) string {
	switch {
	case r.reserved(m, now) && m.Claimed <= now:
		return fmt.Sprintf("it has been reserved since %v", m.Claimed)
	case r.reserved(m, now):
		return fmt.Sprintf("it is reserved from %v on", m.Claimed)
	default:
		return m.Hold.ordered() + m.Hold.because()
	}
}

// ordered says what an operator has ordered.
func (h *Hold) ordered() string {
	if h.Action == Test {
		return "an operator has ordered a wake test"
	}
	return "an operator has ordered it " + string(h.Action)
}

// because gives the reason of a manual order as the end of a sentence.
func (h *Hold) because() string {
	if h.Reason == "" {
		return ""
	}
	return ": " + h.Reason
}

// mostEfficient compares for who is switched on first: by FLOPS/W, ties by name.
func mostEfficient(a, b *Machine) int {
	return cmp.Or(cmp.Compare(b.efficiency(), a.efficiency()), cmp.Compare(a.Name, b.Name))
}

// leastEfficient compares for who is switched off first (E004-10).
func leastEfficient(a, b *Machine) int {
	return cmp.Or(cmp.Compare(a.efficiency(), b.efficiency()), cmp.Compare(a.Name, b.Name))
}

// first compares two of which those that have something come before those that have not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
