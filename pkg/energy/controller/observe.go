// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// world contains everything that one step observes.
type world struct {
	now       span.Instant
	measure   bool // a measurement is due
	hosts     *inventory.Snapshot
	untrusted string
	records   map[string]energy.Record
	settings  energy.Settings
	live      []reservation.Reservation
	claimed   map[string]span.Instant // by host: see energy.Machine.Claimed
	serviced  map[string]span.Instant // by host in maintenance: its end
	services  map[string]Service      // nil if Nova did not answer
	silent    error                   // why Nova did not answer
	access    map[string]energy.Access
	twice     map[string]string
	readings  map[string]energy.Reading // the last reading of each machine
	fresh     map[string]energy.Reading // the readings of this step
	halt      string
	all       bool             // everything may have changed
	places    []place          // sorted by name; the next step uses the memory
	machines  []energy.Machine // of the same hosts

	mu    sync.Mutex // guards the fields below, and records, while hosts advance
	moved bool       // the phase of a host has changed
}

// observe reads everything that a step needs; it returns nil if the controller has nothing to do.
// It fails only if the records or the settings cannot be read: the rules handle other missing data.
func (c *Controller) observe(ctx context.Context, now span.Instant) (*world, error) {
	w := &world{now: now, measure: now >= c.memory.measured.Add(c.MeasureEvery)}
	changed, known := c.touched()
	var err error
	if w.settings, err = c.Settings.EnergySettings(ctx); err != nil {
		return nil, err
	}
	if w.records, err = c.Records.PowerRecords(ctx); err != nil {
		return nil, err
	}
	if w.settings.Rests(now, c.Mode, w.records) && len(c.memory.alarms) == 0 {
		return nil, nil
	}
	w.hosts, w.untrusted = c.Hosts.Snapshot(), c.Hosts.Untrusted(now)
	w.live = c.Promises.Live(span.Span{Start: now, End: span.Forever})
	w.access, w.twice = c.Agents.Access()
	c.locate(w, changed, known)
	c.need(w)
	c.ask(ctx, w)
	if ctx.Err() != nil {
		return nil, ctx.Err() // data that is missing because of the end of ctx proves nothing
	}
	w.halt = c.halt(w)
	c.survey(w)
	c.memory.surveyed = true
	return w, nil
}

// touched returns the result of Touched. After a step that failed before it had seen all hosts, known is false.
func (c *Controller) touched() (hosts []string, known bool) {
	if c.Touched != nil {
		hosts, known = c.Touched()
	}
	known = known && c.memory.surveyed
	c.memory.surveyed = false
	return hosts, known
}

// ask reads the services from Nova and, at the same time, the machines from their agents, within
// lookTimeout.
func (c *Controller) ask(ctx context.Context, w *world) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var asking sync.WaitGroup
	if c.Cloud != nil && (w.measure || c.busy(w)) {
		asking.Go(func() {
			if w.services, w.silent = c.Cloud.Services(ctx); w.silent != nil {
				w.services = nil
				c.Log.WarnContext(ctx, "could not read the compute services from Nova; nothing is switched off until it answers", "error", w.silent)
			}
		})
	}
	c.read(ctx, w)
	asking.Wait()
}

// busy reports whether any host is being switched.
func (c *Controller) busy(w *world) bool {
	if !w.all {
		return slices.ContainsFunc(w.places, func(p place) bool { return p.moves })
	}
	for _, r := range w.records { // also of hosts that have no place
		if moves(&r) {
			return true
		}
	}
	return false
}

// moves reports whether a host must be observed in each step, and not only at measurements.
func moves(r *energy.Record) bool {
	switch r.Phase {
	case energy.Awake:
		return r.Operation != "" // its service must be seen enabled
	case energy.Draining, energy.Stopping, energy.Waking:
		return true
	}
	return r.Testing
}

// read reads the machines: at a measurement all that agents can switch and that may have changed, otherwise those that are
// being switched.
func (c *Controller) read(ctx context.Context, w *world) {
	var ask []string
	for i := range w.places {
		p := &w.places[i]
		due := p.moves || w.measure && (p.unread || !p.rests)
		if !due && !p.look {
			continue
		}
		switch _, reached := w.access[p.host.Name]; {
		case !reached:
			delete(c.memory.readings, p.host.Name)
		case due:
			ask = append(ask, p.host.Name)
			p.look = true
		}
	}
	if w.all {
		maps.DeleteFunc(c.memory.readings, func(host string, _ energy.Reading) bool {
			_, there := w.placeOf(host)
			return !there
		})
	}
	if len(ask) > 0 {
		w.fresh = c.Agents.Read(ctx, ask)
		maps.Copy(c.memory.readings, w.fresh)
	}
	if w.measure && c.Watts != nil {
		c.readWatts(ctx, ask)
	}
	w.readings = c.memory.readings
}

// readWatts reads the power of the hosts whose machines do not report it.
func (c *Controller) readWatts(ctx context.Context, hosts []string) {
	silent := slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return c.memory.readings[host].Watts > 0 })
	if len(silent) == 0 {
		return
	}
	watts, err := c.Watts(ctx, silent)
	if err != nil {
		c.Log.WarnContext(ctx, "could not read the power of the hosts", "error", err)
	}
	for host, n := range watts {
		r := c.memory.readings[host]
		r.Watts = n
		c.memory.readings[host] = r
	}
}

// claims returns, by host, the start of its first claim that has not ended. Maintenance does not
// count, since it does not need the host awake.
func claims(live []reservation.Reservation, now span.Instant) map[string]span.Instant {
	first := map[string]span.Instant{}
	for i := range live {
		for _, claim := range live[i].Claims {
			if claim.Span.End <= now || live[i].Maintenance {
				continue
			}
			if at, known := first[claim.Host]; !known || claim.Span.Start < at {
				first[claim.Host] = claim.Span.Start
			}
		}
	}
	return first
}

// serviced returns, by host that is in maintenance now, the end of the maintenance.
func serviced(live []reservation.Reservation, now span.Instant) map[string]span.Instant {
	until := map[string]span.Instant{}
	for i := range live {
		for _, claim := range live[i].Claims {
			if live[i].Maintenance && claim.Span.Contains(now) {
				until[claim.Host] = claim.Span.End
			}
		}
	}
	return until
}

// inMaintenance returns the reason why Almanac does not switch a host that is in maintenance; "" if it
// is not, or if an operator's order holds, which may be a part of the maintenance.
func (w *world) inMaintenance(r *energy.Record, host string) string {
	end, is := w.serviced[host]
	if !is || r.Hold.Holds(w.now) {
		return ""
	}
	return fmt.Sprintf("it is in maintenance until %v", end)
}

// halt returns the reason why nothing may be switched off now; "" if hosts may be.
func (c *Controller) halt(w *world) string {
	var why []string
	if w.untrusted != "" {
		why = append(why, "the inventory is untrusted: "+w.untrusted)
	}
	if w.silent != nil {
		why = append(why, "Nova does not answer")
	}
	if s := w.settings.Stopped; s != nil {
		why = append(why, "an operator has stopped it: "+cmp.Or(s.Reason, "no reason was given"))
	}
	if s := w.settings.Breaker; s != nil {
		why = append(why, s.Reason)
	}
	if c.Stopped != nil {
		if reason := c.Stopped(); reason != "" {
			why = append(why, reason)
		}
	}
	if reason := c.collapse(w); reason != "" {
		why = append(why, reason)
	}
	return strings.Join(why, "; ")
}

const (
	// recently is for how many seconds a count of the instances is kept.
	recently = 600
	// exodus is the number of instances that must disappear together to be suspicious; total is
	// that number if no instance remains.
	exodus, total = 20, 5
)

// collapse returns a sentence if instances suddenly disappear, all of them or more than half;
// otherwise "". A wiped database can be the cause. Small numbers do not count, so that the normal
// changes of a small cloud are not suspicious.
func (c *Controller) collapse(w *world) string {
	m, now := &c.memory, 0
	for _, h := range w.hosts.Hosts() {
		now += h.InstanceCount
	}
	m.counts = slices.DeleteFunc(m.counts, func(n instanceCount) bool { return n.at <= w.now.Add(-recently) })
	if w.measure || len(m.counts) == 0 {
		m.counts = append(m.counts, instanceCount{w.now, now})
	}
	most := 0
	for _, n := range m.counts {
		most = max(most, n.instances)
	}
	if gone := most - now; gone >= exodus && now*2 < most || gone >= total && now == 0 {
		return fmt.Sprintf("the number of instances fell from %d to %d within %d minutes", most, now, recently/60)
	}
	return ""
}

// survey computes the machines, the form in which plans see the hosts, of all places to look at.
func (c *Controller) survey(w *world) {
	for i := range w.places {
		p := &w.places[i]
		if !p.look {
			continue
		}
		name := p.host.Name
		r := w.records[name]
		w.machines[i] = c.machine(w, p.host)
		p.look, p.rests, p.until, p.state = false, false, until(w.now, &r), w.readings[name].State
		p.calm = r.Quarantine == "" && w.twice[name] == "" && (r.Phase == energy.Awake || r.Phase == energy.Asleep && w.access[name].States != nil)
	}
}

// machine returns a host as plans see it, from the inventory, its record, its agent and its claims.
func (c *Controller) machine(w *world, h *inventory.Host) energy.Machine {
	r, access, known := w.records[h.Name], w.access[h.Name], c.Efficiency(h.Name)
	m := energy.Machine{
		Name: h.Name, Phase: r.Phase, Closed: h.Problem != "" || w.serviced[h.Name] != 0, Busy: h.InstanceCount > 0 || !h.Used.IsZero(), Idle: c.memory.idle[h.Name],
		Zone: h.Zone, Aggregates: h.Aggregates, Traits: custom(h.Traits), Capacity: h.Capacity,
		FlopsPerWatt: cmp.Or(known.FlopsPerWatt, h.FlopsPerWatt), Draw: draw(known.Draw, h, r.Draw),
		BootSeconds: r.BootSeconds(cmp.Or(h.BootSeconds, c.BootTime)), States: access.States, Claimed: span.Forever,
		Hold: r.Hold, LastOn: r.LastOn, LastOff: r.LastOff, Switches: r.SwitchedToday(w.now),
	}
	if at, claimed := w.claimed[h.Name]; claimed {
		m.Claimed = at
	}
	m.Stays, m.Stuck = c.stays(w, h, &r), stuck(w, &r)
	return m
}

// custom returns the traits that an operator has defined. A standard trait, which every host may
// have, need not keep a host on.
func custom(traits []string) []string {
	return slices.DeleteFunc(slices.Clone(traits), func(t string) bool { return !strings.HasPrefix(t, "CUSTOM_") })
}

// draw returns the power of a host. Each value is that of the table, otherwise that of the host's
// properties, otherwise the measured one.
func draw(d energy.Draw, h *inventory.Host, measured energy.Draw) energy.Draw {
	for _, known := range [...]struct {
		name  string
		field *float64
	}{{"idle_watts", &d.Idle}, {"full_watts", &d.Full}, {"standby_watts", &d.Standby}, {"off_watts", &d.Off}, {"boot_joules", &d.BootJoules}} {
		if *known.field != 0 {
			continue
		}
		if set, number := h.Properties[known.name].Any().(float64); number && set > 0 {
			*known.field = set
		}
	}
	d.Idle, d.Standby, d.Off = cmp.Or(d.Idle, measured.Idle), cmp.Or(d.Standby, measured.Standby), cmp.Or(d.Off, measured.Off)
	return d
}

// stays returns the reason why a host must not be switched off even if the rules of the plan allow
// it; "" if there is none.
func (c *Controller) stays(w *world, h *inventory.Host, r *energy.Record) string {
	manual := r.Hold.Holds(w.now)
	reading, read := w.readings[h.Name]
	switch {
	case w.access[h.Name].States == nil:
		return "no agent can switch it"
	case w.twice[h.Name] != "":
		return "two agents announce its machine: " + w.twice[h.Name]
	case h.Problem != "" && r.Phase == energy.Awake:
		return h.Problem
	case !read || reading.Problem != "" || reading.State == "":
		return "its machine cannot be read: " + cmp.Or(reading.Problem, "it does not report its state")
	case reading.State != energy.On && r.Phase == energy.Awake:
		return "its machine reports " + string(reading.State)
	case reading.Untouchable != "":
		return reading.Untouchable
	case h.Power != "" && h.Power != inventory.PowerOn && r.Phase == energy.Awake:
		return "an operator has set its power to " + string(h.Power)
	case c.Admission.Forbids(h) != "":
		return c.Admission.Forbids(h)
	case manual: // the checks below are for the plan alone
		return ""
	}
	if why := cmp.Or(w.inMaintenance(r, h.Name), c.Admission.Refuses(h)); why != "" {
		return why
	}
	switch mode := w.settings.ModeOf(r.Mode, h.Aggregates, c.Mode); {
	case r.Quarantine != "":
		return "it is in quarantine: " + r.Quarantine
	case !mode.AtLeast(energy.ModeRecommend):
		return "its mode is " + string(mode)
	case c.WakeTest && (r.LastWakeTest == nil || !r.LastWakeTest.Woke):
		return "it has not passed a wake test: run 'almanac energy host test " + h.Name + "'"
	}
	return ""
}

// stuck returns the reason why a host cannot be switched on; "" if it can.
func stuck(w *world, r *energy.Record) string {
	reading := w.readings[r.Host]
	switch {
	case r.Phase == energy.Awake:
		return ""
	case r.Phase == energy.Failed:
		return r.Reason
	case w.access[r.Host].States == nil:
		return "no agent can switch it"
	case reading.Untouchable != "":
		return reading.Untouchable
	}
	return w.inMaintenance(r, r.Host)
}
