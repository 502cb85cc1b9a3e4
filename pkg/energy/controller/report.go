// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// tell raises and ends alarms. It stores a report at each measurement, and whenever an
// alarm has begun or ended or the phase of a host has changed.
func (c *Controller) tell(ctx context.Context, lease job.Lease, w *world) error {
	changed, err := c.alarm(ctx, lease, c.alarms(w), w)
	if err != nil || c.Reports == nil || !changed && !w.measure && !w.moved {
		return err
	}
	return c.Reports.SaveEnergyReport(ctx, lease, c.report(w))
}

// alarms returns the alarms that are in force now.
func (c *Controller) alarms(w *world) []energy.Alarm {
	watched := c.memory.watched[:0] // few, as most hosts are calm
	for i := range w.machines {
		m := &w.machines[i]
		if c.calm(w, &w.places[i], m) {
			continue
		}
		r := w.records[m.Name]
		r.Host = m.Name
		one := energy.Watched{
			Record: r, Machine: *m, Reading: w.readings[m.Name], Agent: w.access[m.Name].States != nil,
			Twice: w.twice[m.Name], Mismatches: c.memory.odd[m.Name], How: c.Switching,
		}
		if s, known := w.services[m.Name]; known {
			one.Service = &s.Up
		}
		watched = append(watched, one)
	}
	c.memory.watched = watched
	seen := energy.Watch{Hosts: watched, Agents: c.Agents.Agents(), Breaker: w.settings.Breaker}
	if c.acts(w) {
		seen.Halt = w.halt
	}
	return energy.Alarms(w.now, seen, c.Rules)
}

// calm reports whether a host needs no check for alarms, as most do: it is on, or sleeps
// and no reservation needs it yet.
func (c *Controller) calm(w *world, p *place, m *energy.Machine) bool {
	switch {
	case !p.calm:
		return false
	case m.Phase == energy.Awake:
		return c.memory.odd[m.Name] == 0
	}
	return m.Claimed == span.Forever || w.now < c.Rules.WakeAt(m) && w.now.Add(m.BootSeconds) <= m.Claimed
}

// acts reports whether the mode of any host allows switching off.
func (c *Controller) acts(w *world) bool {
	return slices.ContainsFunc(w.machines, func(m energy.Machine) bool { return c.mode(w, m.Name).AtLeast(energy.ModeRecommend) })
}

// alarm records which alarms have begun and ended since the last step.
func (c *Controller) alarm(ctx context.Context, lease job.Lease, now []energy.Alarm, w *world) (changed bool, err error) {
	current := map[alarmKey]energy.Alarm{}
	var begun, ended []energy.Alarm
	for _, a := range now {
		key := keyOf(&a)
		if before, raised := c.memory.alarms[key]; raised {
			a.Since = before.Since
		} else {
			a.Since = w.now
			begun = append(begun, a)
		}
		current[key] = a
	}
	for key, a := range c.memory.alarms {
		if _, still := current[key]; !still {
			ended = append(ended, a)
		}
	}
	if len(begun)+len(ended) == 0 {
		c.memory.alarms = current
		return false, nil
	}
	var entries []energy.Entry
	for _, a := range begun {
		entries = append(entries, energy.Entry{At: w.now, Host: a.Host, Kind: energy.EntryAlarm, By: energy.Almanac, Text: string(a.Kind) + ": " + a.Text})
	}
	for _, a := range ended {
		entries = append(entries, energy.Entry{At: w.now, Host: a.Host, Kind: energy.EntryAlarm, By: energy.Almanac, Text: string(a.Kind) + " is over"})
	}
	err = c.Records.ChangePower(ctx, lease, nil, func(map[string]energy.Record) ([]energy.Entry, error) { return entries, nil })
	if err != nil {
		return false, err
	}
	c.memory.alarms = current
	c.ring(ctx, begun, ended)
	return true, nil
}

// ring logs alarms that begin and end, and sends their notifications.
func (c *Controller) ring(ctx context.Context, begun, ended []energy.Alarm) {
	tell := func(a energy.Alarm, over bool) {
		if c.Notices == nil {
			return
		}
		if err := c.Notices.Alarm(ctx, a, over); err != nil {
			c.Log.WarnContext(ctx, "could not send the notification of an alarm", "alarm", a.Kind, "error", err)
		}
	}
	for _, a := range begun {
		c.Log.WarnContext(ctx, a.Text, "alarm", a.Kind, "host", a.Host)
		tell(a, false)
	}
	for _, a := range ended {
		c.Log.InfoContext(ctx, "an alarm is over", "alarm", a.Kind, "host", a.Host)
		tell(a, true)
	}
}

// report returns the state of the power of all hosts, for the API.
func (c *Controller) report(w *world) energy.Report {
	r := energy.Report{At: w.now, Controller: c.Replica, Halt: w.halt, Agents: c.Agents.Agents()}
	r.Alarms = slices.SortedFunc(maps.Values(c.memory.alarms), func(a, b energy.Alarm) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Host, b.Host))
	})
	kept := map[string]string{}
	for _, k := range c.memory.plan.Kept {
		kept[k.Host] = k.Reason
	}
	for i := range w.machines {
		m := w.machines[i]
		record := w.recordOf(m.Name)
		m.Phase = record.Phase
		access := w.access[m.Name]
		r.Hosts = append(r.Hosts, energy.Observed{
			Machine: m, Reading: w.readings[m.Name], Agent: access.Agent, Driver: access.Driver, Mode: c.mode(w, m.Name),
			Explanation: energy.Explain(w.now, &m, &record, kept[m.Name], c.Rules),
		})
	}
	return r
}
