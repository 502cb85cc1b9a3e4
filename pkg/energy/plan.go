// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Plan returns what should be switched now: the procedure of paper 004, section 004.1, with
// errata E004-1 to E004-6, E004-10 and E004-12, under the safety rules. It depends on s
// alone, and not on the order of its machines.
//
// Plan first wakes the hosts that are reserved or ordered on (Due) and carries out manual
// orders to switch off. Then it wakes the most efficient sleeping hosts while fewer hosts
// are on than are required and spare. A host that is about to be switched off counts as
// asleep here, and stays on if it is needed. Finally it switches off the least efficient
// idle hosts while more hosts are on than that. It considers each host once, so that it
// always ends.
func (r Rules) Plan(s Situation) Plan {
	p := newPlanning(r, &s)
	p.wakeDue()
	p.obey()
	p.wakeMore()
	p.switchOff()
	p.complain()
	return p.Plan
}

// planning is a plan in progress.
type planning struct {
	Plan
	r     Rules
	s     *Situation
	least []*Machine // all machines, the least efficient first

	on, free, booting, off int // after the switches planned so far; off counts the idle hosts switched off
	// freeCapacity is the capacity of the free hosts, which are on or waking, without work and not
	// reserved. It is counted only if a rule needs it.
	freeCapacity resource.Vector
	awake        map[member]int // number of Awake hosts by group
	ordered      map[string]bool
	short        []string
}

// member identifies a group to which a host belongs.
type member struct {
	kind Group
	name string
}

// newPlanning returns the state of a plan before its first decision: how many hosts are on, booting and
// reserved, and which are the least efficient.
func newPlanning(r Rules, s *Situation) *planning {
	p := &planning{r: r, s: s, awake: map[member]int{}, ordered: map[string]bool{}}
	p.Plan = Plan{At: s.Now, Forecast: s.Forecast, Spare: r.spare(len(s.Machines))}
	p.least = make([]*Machine, len(s.Machines))
	for i := range s.Machines {
		m := &s.Machines[i]
		p.least[i] = m
		if r.reserved(m, s.Now) {
			p.Reserved++
		}
		if !m.counts() {
			continue
		}
		p.on++
		p.count(m, +1)
		if m.Phase == Waking {
			p.booting++
			continue
		}
		for _, g := range r.groups(m) {
			p.awake[g]++
		}
	}
	slices.SortFunc(p.least, leastEfficient)
	p.On, p.Required = p.on, max(s.Forecast, p.Reserved)
	return p
}

// counts reports whether a machine is on or waking, and accepts instances (Res_on of the paper).
func (m *Machine) counts() bool {
	return m.Phase.Counts() && (m.Phase == Waking || m.Busy || !m.Closed)
}

// spare returns how many hosts the rules keep on in addition to the required ones, if there are
// that many hosts.
func (r *Rules) spare(hosts int) int {
	percent := min(max(r.SparePercent, 0), 100)
	return max(r.SpareHosts, (hosts*percent+99)/100, 0)
}

// groups returns the groups to which the machine belongs and in which one host must stay on.
func (r *Rules) groups(m *Machine) (list []member) {
	for _, kind := range r.KeepLast {
		switch kind {
		case Zones:
			if m.Zone != "" {
				list = append(list, member{kind, m.Zone})
			}
		case Aggregates:
			for _, name := range m.Aggregates {
				list = append(list, member{kind, name})
			}
		case Traits:
			for _, name := range m.Traits {
				list = append(list, member{kind, name})
			}
		}
	}
	return list
}

// count adds a machine to the free hosts, or removes it if by is -1. It ignores machines that have
// work or are reserved.
func (p *planning) count(m *Machine, by int64) {
	if m.Busy || p.r.reserved(m, p.s.Now) {
		return
	}
	p.free += int(by)
	if !p.r.SpareCapacity.IsZero() {
		p.freeCapacity = p.freeCapacity.Add(m.Capacity.Scale(by))
	}
}

// order adds a switch to the plan and updates the counts.
func (p *planning) order(m *Machine, w Switch) {
	p.Switches = append(p.Switches, w)
	p.ordered[m.Name] = true
	switch {
	case w.To == On:
		p.on++
		p.count(m, +1)
		if m.Phase == Asleep {
			p.booting++
		}
	case m.counts():
		p.on--
		p.count(m, -1)
		for _, g := range p.r.groups(m) {
			p.awake[g]--
		}
	}
}

// wakeDue orders the hosts on that reservations need now. Those that cannot be ordered are entered as
// short.
func (p *planning) wakeDue() {
	due, hindered := p.r.due(p.s)
	byName := make(map[string]*Machine, len(p.least))
	for _, m := range p.least {
		byName[m.Name] = m
	}
	for _, w := range due {
		p.order(byName[w.Host], w)
	}
	for _, h := range hindered {
		p.short = append(p.short, fmt.Sprintf("%s is needed, and is not switched on: %s", h.Host, h.Reason))
	}
}

// obey switches off the hosts that operators have ordered off. The limits of the rules do not apply
// to manual orders, but reservations, work, an untrusted inventory and the reasons in Stays prevent
// them.
func (p *planning) obey() {
	for _, m := range p.least {
		if !m.idle() || !m.heldDown(p.s.Now) {
			continue
		}
		to := Off
		if m.Hold.Action == HoldStandby {
			to = Standby
		}
		why := firstOf(p, m, keptReserved, keptByState, keptWithoutAgent, keptHalted)
		if why == "" && !slices.Contains(m.States, to) {
			why = fmt.Sprintf("its driver does not have the state %s", to)
		}
		if why != "" {
			p.Kept = append(p.Kept, Kept{m.Name, fmt.Sprintf("%s, but %s", m.Hold.ordered(), why)})
			continue
		}
		p.order(m, Switch{Host: m.Name, To: to, Urgent: true, Reason: m.Hold.ordered() + m.Hold.because()})
	}
}

// wakeMore wakes the most efficient hosts until as many are on as are required and spare.
// Hosts that are about to be switched off are still on, and come before hosts that have to
// boot.
func (p *planning) wakeMore() {
	var asleep []*Machine
	for _, m := range p.least {
		if (m.Phase == Asleep || m.Phase == Draining) && !p.ordered[m.Name] && !m.heldDown(p.s.Now) && m.hindrance(p.s.Now) == "" {
			asleep = append(asleep, m)
		}
	}
	slices.SortFunc(asleep, func(a, b *Machine) int {
		return cmp.Or(first(a.Phase == Draining, b.Phase == Draining), mostEfficient(a, b))
	})
	for _, m := range asleep {
		if m.Phase == Asleep && (p.tooEarly(m) || p.r.MostBooting > 0 && p.booting >= p.r.MostBooting) {
			continue
		}
		if why := p.wants(m); why != "" {
			p.order(m, Switch{Host: m.Name, To: On, Reason: why})
		}
	}
}

// tooEarly reports whether a machine has been off for less than MinOff.
func (p *planning) tooEarly(m *Machine) bool {
	return m.LastOff != 0 && p.s.Now < m.LastOff.Add(p.r.MinOff)
}

// wants returns the reason why one more host must be on that this machine can supply; "" if none is
// required.
func (p *planning) wants(m *Machine) string {
	switch lacking := p.lacking(); {
	case p.on < p.Required:
		return fmt.Sprintf("%d hosts are required, and %d are on", p.Required, p.on)
	case p.on < p.Required+p.Spare:
		return fmt.Sprintf("%d hosts are required and %d kept as spare, and %d are on", p.Required, p.Spare, p.on)
	case p.free < p.Spare:
		return fmt.Sprintf("%d hosts are kept as spare, and %d are on and free", p.Spare, p.free)
	case offers(m.Capacity, lacking):
		return fmt.Sprintf("hosts are kept as spare, and those that are on and free lack %v", lacking)
	}
	return ""
}

// lacking returns the spare capacity that is missing on the free hosts.
func (p *planning) lacking() resource.Vector {
	return p.r.SpareCapacity.Sub(p.freeCapacity).Max(resource.Vector{})
}

// offers reports whether the capacity contains some of what is lacking.
func offers(capacity, lacking resource.Vector) bool {
	for class, amount := range lacking.Custom {
		if amount > 0 && capacity.Custom[class] > 0 {
			return true
		}
	}
	return lacking.VCPUs > 0 && capacity.VCPUs > 0 || lacking.MemoryMB > 0 && capacity.MemoryMB > 0 || lacking.DiskGB > 0 && capacity.DiskGB > 0
}

// switchOff switches off the least efficient idle hosts, as far as the rules allow.
func (p *planning) switchOff() {
	for _, m := range p.least {
		if !m.idle() || m.heldDown(p.s.Now) {
			continue
		}
		why := firstOf(p, m, safeguards...)
		to := Off
		if why == "" {
			to, why = p.r.depth(m, p.s.Now)
		}
		if why == "" {
			why = keptByLimit(p, m)
		}
		if why != "" {
			p.Kept = append(p.Kept, Kept{m.Name, why})
			continue
		}
		reason := fmt.Sprintf("it has been idle for %d measurements, and %d hosts are on where %d are enough", m.Idle, p.on, p.Required+p.Spare)
		p.order(m, Switch{Host: m.Name, To: to, Reason: reason})
		p.off++
	}
}

// complain sets Short to what the plan cannot meet.
func (p *planning) complain() {
	if p.on < p.Required {
		p.short = append(p.short, fmt.Sprintf("%d hosts are required, and only %d can be on", p.Required, p.on))
	}
	if left := max(min(p.free, p.on-p.Required), 0); left < p.Spare {
		p.short = append(p.short, fmt.Sprintf("%d hosts must be kept as spare, and only %d are left", p.Spare, left))
	}
	if lacking := p.lacking(); !lacking.IsZero() {
		p.short = append(p.short, fmt.Sprintf("the hosts that are kept as spare lack %v", lacking))
	}
	p.Short = strings.Join(p.short, "; ")
}
