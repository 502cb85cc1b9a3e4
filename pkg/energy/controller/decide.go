// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// decide measures and plans if that is due, and returns the switches to make now, by the name of
// the host.
func (c *Controller) decide(ctx context.Context, lease job.Lease, w *world) (map[string]energy.Switch, error) {
	if w.measure {
		if err := c.measure(ctx, lease, w); err != nil {
			return nil, err
		}
	}
	wants := map[string]energy.Switch{}
	if err := c.approved(ctx, lease, w, wants); err != nil { // before a new plan replaces the approved one
		return nil, err
	}
	if c.planDue(w) {
		if err := c.replan(ctx, lease, w); err != nil {
			return nil, err
		}
		for _, s := range c.memory.plan.Switches {
			if c.atOnce(w, s) {
				wants[s.Host] = s
			}
		}
	}
	for _, s := range c.Rules.Due(c.situation(w)) {
		wants[s.Host] = s
	}
	return wants, nil
}

// measure counts idle hosts and updates the history and the savings.
func (c *Controller) measure(ctx context.Context, lease job.Lease, w *world) error {
	m := &c.memory
	m.idle = energy.Count(m.idle, w.machines)
	m.measured = w.now
	demand := energy.Demand{At: w.now}
	for i := range w.machines {
		one := &w.machines[i]
		one.Idle = m.idle[one.Name]
		if one.Busy {
			demand.InUse++
		}
		if one.Claimed <= w.now {
			demand.Reserved++
		}
		if w.places[i].state == energy.Off && one.Phase == energy.Awake {
			m.odd[one.Name]++
		} else {
			delete(m.odd, one.Name)
		}
	}
	m.forecaster.Observe(w.now, demand.InUse)
	if err := c.History.AddDemand(ctx, lease, demand, w.now.Add(-c.Keep)); err != nil {
		return err
	}
	if err := c.weigh(ctx, lease, w); err != nil {
		return err
	}
	for i := range w.places {
		w.places[i].unread = false
	}
	return c.Settings.ChangeEnergySettings(ctx, lease, func(s *energy.Settings) ([]energy.Entry, error) {
		c.save(&s.Savings, w)
		w.settings.Savings = s.Savings
		return nil, nil
	})
}

// save adds the time since the last measurement to the savings, but at most twice the measurement
// interval, because nothing observed a longer gap.
func (c *Controller) save(s *energy.Savings, w *world) {
	spells := c.memory.spells[:0]
	for i := range w.places {
		p := &w.places[i]
		spells = append(spells, energy.Spell{Machine: &w.machines[i], State: p.state, Booted: p.begun != 0 && p.begun >= s.Until})
	}
	since := s.Until
	s.Add(w.now, 2*c.MeasureEvery, spells)
	c.memory.spells = spells
	s.Delay += energy.DelayReq(delayed(w, since))
}

// delayed returns the reservations created since an instant that wait for hosts to boot.
func delayed(w *world, since span.Instant) (all []energy.Delayed) {
	for i := range w.live {
		r := &w.live[i]
		if !r.DelayedByBoot || r.Created <= since || r.Created > w.now || since == 0 {
			continue
		}
		cores := int64(0)
		for _, host := range r.HostNames() {
			if h := w.hostOf(host); h != nil {
				cores += h.Capacity.VCPUs
			}
		}
		all = append(all, energy.Delayed{Cores: cores, Boot: int64(r.Span.Start - r.Created), Duration: r.Span.Seconds()})
	}
	return all
}

// weigh stores the power that machines use while they are idle, in standby or off, if they report
// it and it differs from the stored value. The idle power of a host that sleeps cannot be measured
// later.
func (c *Controller) weigh(ctx context.Context, lease job.Lease, w *world) error {
	measured := map[string]energy.Draw{}
	for i := range w.machines {
		if !w.places[i].unread {
			continue
		}
		m := &w.machines[i]
		reading := w.readings[m.Name]
		d := w.records[m.Name].Draw
		var field *float64
		switch {
		case reading.State == energy.Standby:
			field = &d.Standby
		case reading.State == energy.Off:
			field = &d.Off
		case reading.State == energy.On && m.Phase == energy.Awake && !m.Busy:
			field = &d.Idle
		}
		if field != nil && reading.Watts > 0 && math.Abs(reading.Watts-*field) > noise*reading.Watts {
			*field = reading.Watts
			measured[m.Name] = d
		}
	}
	if len(measured) == 0 {
		return nil
	}
	return c.Records.ChangePower(ctx, lease, slices.Sorted(maps.Keys(measured)), func(stored map[string]energy.Record) ([]energy.Entry, error) {
		for host, d := range measured {
			r := stored[host]
			r.Host, r.Draw = host, d
			stored[host] = r
		}
		return nil, nil
	})
}

// noise is the largest relative difference between the power of an idle machine and the stored
// value that does not change the stored value.
const noise = 0.1

// planDue reports whether a plan is due: every PlanEvery seconds, and after a manual order.
func (c *Controller) planDue(w *world) bool {
	if w.measure && w.now >= c.memory.planned.Add(c.PlanEvery) {
		return true
	}
	return slices.ContainsFunc(w.places, func(p place) bool { return p.hold.Holds(w.now) && p.hold.At >= c.memory.planned })
}

// situation returns the input of a plan: the machines of this step and the forecast for the time until
// the next plan, or a boot if that is longer.
func (c *Controller) situation(w *world) energy.Situation {
	return energy.Situation{
		Now: w.now, Machines: w.machines, Halt: w.halt,
		Forecast: c.memory.forecaster.Forecast(max(c.PlanEvery, c.BootTime)),
	}
}

// replan makes a plan and stores it under a new id, without an approval.
func (c *Controller) replan(ctx context.Context, lease job.Lease, w *world) error {
	m := &c.memory
	m.plan, m.planned = c.Rules.Plan(c.situation(w)), w.now
	id := c.NewID()
	return c.Settings.ChangeEnergySettings(ctx, lease, func(s *energy.Settings) ([]energy.Entry, error) {
		s.PlanID, s.Plan, s.Approved = id, &m.plan, nil
		w.settings.PlanID, w.settings.Plan, w.settings.Approved = id, &m.plan, nil
		return nil, nil
	})
}

// atOnce reports whether a switch needs no approval: it is urgent, it switches a host on, which
// does no harm, or the host's mode is auto.
func (c *Controller) atOnce(w *world, s energy.Switch) bool {
	return s.Urgent || s.To == energy.On || c.mode(w, s.Host) == energy.ModeAuto
}

// mode returns the mode of a host: its own, else the most cautious of its aggregates, else that of all
// hosts.
func (c *Controller) mode(w *world, host string) energy.Mode {
	var aggregates []string
	if h := w.hostOf(host); h != nil {
		aggregates = h.Aggregates
	}
	return w.settings.ModeOf(w.records[host].Mode, aggregates, c.Mode)
}

// approved adds the switches of a plan that an operator has approved, unless a plan made
// now would no longer contain them, and marks the plan as carried out.
func (c *Controller) approved(ctx context.Context, lease job.Lease, w *world, wants map[string]energy.Switch) error {
	a := w.settings.Approved
	if a == nil || a.Plan != w.settings.PlanID || w.settings.Plan == nil || a.Begun {
		return nil
	}
	again := c.Rules.Plan(c.situation(w))
	for _, s := range w.settings.Plan.Switches {
		same := func(other energy.Switch) bool { return other.Host == s.Host && other.To == s.To }
		if slices.ContainsFunc(again.Switches, same) {
			wants[s.Host] = s
		}
	}
	return c.Settings.ChangeEnergySettings(ctx, lease, func(s *energy.Settings) ([]energy.Entry, error) {
		if s.Approved == nil || s.Approved.Plan != a.Plan {
			return nil, nil
		}
		s.Approved.Begun = true
		return []energy.Entry{{At: w.now, Kind: energy.EntrySetting, By: energy.Almanac,
			Text: fmt.Sprintf("carrying out the plan of %v, which was approved", w.settings.Plan.At)}}, nil
	})
}

// hostOf returns the host of the inventory with a name; nil if there is none.
func (w *world) hostOf(name string) *inventory.Host {
	if i, known := w.hosts.Index(name); known {
		return w.hosts.Host(i)
	}
	return nil
}
