// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// safeguard returns the reason why an idle machine stays on; "" if it may be switched off.
type safeguard func(p *planning, m *Machine) string

// safeguards are the rules that a machine must pass before it is switched off. They are checked in
// this order, so that the reason that lasts longest is found first. keptByLimit is checked after
// all of them, so that it is the reason only for machines that would otherwise be switched off.
var safeguards = []safeguard{
	keptByHold, keptReserved, keptByState, keptWithoutAgent, keptHalted, keptFresh,
	keptRequired, keptSpare, keptSpareCapacity, keptLast, keptMinOn, keptBySwitches,
}

// firstOf returns the first reason why the machine stays on; "" if there is none.
func firstOf(p *planning, m *Machine, all ...safeguard) string {
	for _, rule := range all {
		if why := rule(p, m); why != "" {
			return why
		}
	}
	return ""
}

// keptByHold returns the operator's hold that keeps the machine on; "" if there is none.
func keptByHold(p *planning, m *Machine) string {
	if !m.holds(p.s.Now, HoldOn) {
		return ""
	}
	return m.Hold.ordered() + m.Hold.because()
}

// keptReserved returns that the machine is reserved now or soon; "" if it is not.
func keptReserved(p *planning, m *Machine) string {
	if !p.r.reserved(m, p.s.Now) {
		return ""
	}
	return p.r.wakeReason(m, p.s.Now)
}

func keptByState(_ *planning, m *Machine) string { return m.Stays }

// keptWithoutAgent returns that no agent can switch the machine; "" if one can.
func keptWithoutAgent(_ *planning, m *Machine) string {
	if len(m.States) > 0 {
		return ""
	}
	return "no agent can switch it"
}

// keptHalted returns why nothing is switched off now; "" if hosts may be.
func keptHalted(p *planning, _ *Machine) string {
	if p.s.Halt == "" {
		return ""
	}
	return "nothing is switched off: " + p.s.Halt
}

// keptFresh returns that the machine has not been idle for long enough; "" if it has.
func keptFresh(p *planning, m *Machine) string {
	if m.Idle >= p.r.IdleNeeded {
		return ""
	}
	return fmt.Sprintf("it has been idle for %s, and must be for %d", fault.Counted(m.Idle, "measurement"), p.r.IdleNeeded)
}

// keptRequired returns that no more hosts are on than are required; "" if there are more.
func keptRequired(p *planning, _ *Machine) string {
	if p.on > p.Required {
		return ""
	}
	return fmt.Sprintf("%d hosts are required, and %d are on", p.Required, p.on)
}

// keptSpare keeps the spare hosts in addition to the required hosts, and also in addition to the
// busy and the reserved ones: if some hosts are busy and others are reserved but idle, Required is
// only the larger of the two numbers, and the first rule alone could leave no free host.
func keptSpare(p *planning, _ *Machine) string {
	switch {
	case p.on <= p.Required+p.Spare:
		return fmt.Sprintf("%d hosts are required and %d kept as spare, and %d are on", p.Required, p.Spare, p.on)
	case p.free <= p.Spare:
		return fmt.Sprintf("%d hosts are kept as spare, and %d are on and free", p.Spare, p.free)
	}
	return ""
}

// keptSpareCapacity returns that without the machine less than the spare capacity would be left; "" if
// enough is left.
func keptSpareCapacity(p *planning, m *Machine) string {
	if p.r.SpareCapacity.IsZero() || !offers(m.Capacity, p.r.SpareCapacity) {
		return ""
	}
	left := p.freeCapacity.Sub(m.Capacity)
	if lacking := p.r.SpareCapacity.Sub(left).Max(resource.Vector{}); offers(m.Capacity, lacking) {
		return fmt.Sprintf("its capacity is kept as spare: without it %v would be lacking", lacking)
	}
	return ""
}

// keptLast returns that the machine is the last one of its aggregate, zone or trait that is on; "" if it
// is not.
func keptLast(p *planning, m *Machine) string {
	for _, g := range p.r.groups(m) {
		if p.awake[g] <= 1 {
			return fmt.Sprintf("it is the last host of the %s %s that is on", g.kind, g.name)
		}
	}
	return ""
}

// keptMinOn returns that the machine was switched on too short a time ago; "" if it was on for long
// enough.
func keptMinOn(p *planning, m *Machine) string {
	if until := m.LastOn.Add(p.r.MinOn); m.LastOn != 0 && p.s.Now < until {
		return fmt.Sprintf("it was switched on at %v, and stays on until %v", m.LastOn, until)
	}
	return ""
}

// keptBySwitches leaves one of the allowed switches for the wake that follows, which no limit
// prevents.
func keptBySwitches(p *planning, m *Machine) string {
	if p.r.MostSwitches <= 0 || m.Switches+2 <= p.r.MostSwitches {
		return ""
	}
	return fmt.Sprintf("it has been switched %d times within a day, and the limit is %d", m.Switches, p.r.MostSwitches)
}

// keptByLimit returns that the plan has switched off as many hosts as it may; "" if it may switch off
// more.
func keptByLimit(p *planning, _ *Machine) string {
	if p.r.MostOff <= 0 || p.off < p.r.MostOff {
		return ""
	}
	return fmt.Sprintf("a plan switches off %d hosts at most", p.r.MostOff)
}
