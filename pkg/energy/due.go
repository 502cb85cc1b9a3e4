// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// WakeAt returns when a machine must be woken for its first claim: the horizon before the
// claim starts, or earlier if its boot needs longer. It returns Forever for a machine
// without a claim, and an instant in the past if the claim has started.
func (r Rules) WakeAt(m *Machine) span.Instant {
	return before(m.Claimed, max(r.Horizon, r.lead(m)))
}

// bootBy returns the latest instant at which the machine can be woken and still be up when its
// first claim starts.
func (r *Rules) bootBy(m *Machine) span.Instant { return before(m.Claimed, r.lead(m)) }

// lead returns the number of seconds that a machine needs to be up, including the margin.
func (r *Rules) lead(m *Machine) int64 { return m.BootSeconds + r.BootMargin }

// before returns the instant that lies seconds before start; Forever stays Forever.
func before(start span.Instant, seconds int64) span.Instant {
	if start == span.Forever {
		return start
	}
	return start.Add(-max(seconds, 0))
}

// reserved reports whether a claim on the machine has started, or starts so soon that the machine
// must be on for it (Res_reserv of paper 004). A claim that starts exactly at the horizon counts
// (erratum E004-12).
func (r *Rules) reserved(m *Machine, now span.Instant) bool {
	at := r.WakeAt(m)
	return at != span.Forever && at <= now
}

// efficiency returns the FLOPS/W of the machine; 0 if the value is unknown or invalid.
func (m *Machine) efficiency() float64 {
	if math.IsNaN(m.FlopsPerWatt) || m.FlopsPerWatt < 0 {
		return 0
	}
	return m.FlopsPerWatt
}

// holds reports whether one of these manual orders applies at now.
func (m *Machine) holds(now span.Instant, actions ...ManualAction) bool {
	return m.Hold.Holds(now) && slices.Contains(actions, m.Hold.Action)
}

// heldDown reports whether a manual order keeps the machine off or orders a wake test.
func (m *Machine) heldDown(now span.Instant) bool { return m.holds(now, HoldOff, HoldStandby, Test) }

// Due returns the wakes that cannot wait for the next plan, the most urgent first: hosts
// whose claim is near (WakeAt), and hosts that an operator has ordered on. They include
// hosts that are about to be switched off. MostBooting delays only hosts that would still
// be up in time.
func (r Rules) Due(s Situation) []Switch {
	switches, _ := r.due(&s)
	return switches
}

// due returns the switches of Due, and the reserved hosts that should be on and cannot be woken,
// with the reasons.
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
			hindered = append(hindered, Kept{m.Name, fmt.Sprintf("%d hosts are already booting, and it will still be in time", booting)})
		default:
			switches = append(switches, Switch{Host: m.Name, To: On, Reason: r.wakeReason(m, s.Now), Urgent: true})
			if m.Phase == Asleep {
				booting++
			}
		}
	}
	return switches, hindered
}

// orderedOn reports whether an operator has ordered the host on and it is not on. The wake test of
// a host that already sleeps counts as such an order.
func (r *Rules) orderedOn(m *Machine, now span.Instant) bool {
	return m.holds(now, HoldOn) || m.Phase == Asleep && m.holds(now, Test)
}

// hindrance returns the reason why a machine cannot be switched on; "" if it can.
func (m *Machine) hindrance(now span.Instant) string {
	switch {
	case m.Phase == Draining: // a Draining host is on
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

// wakeReason returns why the machine must be on: its reservation, or the operator's hold.
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

// ordered describes the manual order as a clause of a sentence.
func (h *Hold) ordered() string {
	if h.Action == Test {
		return "an operator has ordered a wake test"
	}
	return "an operator has ordered it " + string(h.Action)
}

// because returns the reason of a manual order, as the end of a sentence; "" if it has none.
func (h *Hold) because() string {
	if h.Reason == "" {
		return ""
	}
	return ": " + h.Reason
}

// mostEfficient compares machines by the order in which they are switched on: by FLOPS/W, the
// largest first, then by name.
func mostEfficient(a, b *Machine) int {
	return cmp.Or(cmp.Compare(b.efficiency(), a.efficiency()), cmp.Compare(a.Name, b.Name))
}

// leastEfficient compares machines by the order in which they are switched off: by FLOPS/W, the
// smallest first, then by name (erratum E004-10).
func leastEfficient(a, b *Machine) int {
	return cmp.Or(cmp.Compare(a.efficiency(), b.efficiency()), cmp.Compare(a.Name, b.Name))
}

// first compares booleans: true comes before false.
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
