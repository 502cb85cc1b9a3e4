// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/precondition"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Admin is what operators use, in any process: it reads what the controller has stored, and
// stores what operators order.
type Admin struct {
	Records    Records
	Settings   Settings
	History    History
	Reports    Reports
	Inventory  Hosts
	Promises   Promises
	Admission  energy.Admission
	Rules      energy.Rules
	Configured energy.Mode // the configured mode
	StaleAfter int64       // the age in seconds from which a report is out of date
	Now        func() span.Instant
	// Ordered is called after an order, so that the controller acts on it soon; nil means no call.
	Ordered func()
}

// Status is the state of the controller.
type Status struct {
	Settings   energy.Settings
	Configured energy.Mode // the configured mode
	Mode       energy.Mode // in force for hosts without a mode of their own or of an aggregate
	Report     energy.Report
	// Stale is the reason, as a sentence, why Report is out of date: no process measures, or the one
	// that does is late. It is "" if the report is current.
	Stale string
}

// Change is what an operator changes in the settings. A nil field changes nothing.
type Change struct {
	Mode *energy.Mode // empty: the configured mode
	// Aggregates and Hosts contain modes by the name of the aggregate or host; an empty mode
	// removes the present one.
	Aggregates, Hosts map[string]energy.Mode
	// Stop true stops the switching off of hosts, false allows it again.
	Stop *bool
	// ResetBreaker allows switching off again after too many failed boots.
	ResetBreaker bool
	Reason       string
	// Expected are the versions of the settings that the change is for; see energy.Settings.Version.
	Expected precondition.Versions
}

// HostStatus is the state of one host.
type HostStatus struct {
	Record   energy.Record
	Observed energy.Observed
	// Halt is the reason why nothing is switched off now; "" if hosts may be.
	Halt string
	// Outcome is the effect of the order that was just given, as a sentence.
	Outcome string
}

// Name returns the name of the host.
func (h *HostStatus) Name() string { return cmp.Or(h.Record.Host, h.Observed.Machine.Name) }

// Phase returns the word for the phase of the host.
func (h *HostStatus) Phase() string { return cmp.Or(h.Record.Phase, h.Observed.Machine.Phase).Word() }

// Status returns the state of the controller.
func (c *Admin) Status(ctx context.Context) (Status, error) {
	settings, err := c.Settings.EnergySettings(ctx)
	if err != nil {
		return Status{}, err
	}
	report, err := c.Reports.EnergyReport(ctx)
	if err != nil {
		return Status{}, err
	}
	records, err := c.Records.PowerRecords(ctx)
	if err != nil {
		return Status{}, err
	}
	s := Status{Settings: settings, Configured: c.Configured, Mode: cmp.Or(settings.Mode, c.Configured), Report: report}
	if !settings.Rests(c.Now(), c.Configured, records) {
		s.Stale = c.stale(report)
	}
	return s, nil
}

// stale returns why the report is too old to rely on; "" if it is not.
func (c *Admin) stale(r energy.Report) string {
	switch age := int64(c.Now() - r.At); {
	case r.At == 0:
		return "no process has measured yet; start one with the role energy"
	case age > c.StaleAfter:
		return fmt.Sprintf("the last measurement was %v ago; check that a process with the role energy runs", time.Duration(age)*time.Second)
	}
	return ""
}

// Change applies a change by a user with the id by. It fails with an Invalid fault for an
// unknown mode, with a NotFound fault for an unknown host, and with a Precondition fault if the
// change is for another version.
func (c *Admin) Change(ctx context.Context, by string, change Change) error {
	if err := c.check(&change); err != nil {
		return err
	}
	now := c.Now()
	err := c.Settings.ChangeEnergySettings(ctx, job.Lease{}, func(s *energy.Settings) (entries []energy.Entry, err error) {
		if !change.Expected.Met(s.VersionText()) {
			return nil, fault.Changed("state of the energy controller")
		}
		s.Version++
		tell := func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			if change.Reason != "" {
				text += ": " + change.Reason
			}
			entries = append(entries, energy.Entry{At: now, Kind: energy.EntrySetting, By: by, Text: text})
		}
		if change.Mode != nil {
			s.Mode = *change.Mode
			tell("the mode is %s now", cmp.Or(s.Mode, c.Configured))
		}
		for _, name := range slices.Sorted(maps.Keys(change.Aggregates)) {
			s.Aggregates = changed(s.Aggregates, name, change.Aggregates[name])
			tell("the mode of aggregate %s is %s now", name, cmp.Or(string(change.Aggregates[name]), "that of all hosts"))
		}
		switch {
		case change.Stop == nil:
		case *change.Stop:
			s.Stopped = &energy.Stop{By: by, Reason: change.Reason, At: now}
			tell("nothing is switched off from now on")
		case s.Stopped != nil:
			s.Stopped = nil
			tell("hosts may be switched off again")
		}
		if change.ResetBreaker && (s.Breaker != nil || s.FailedBoots > 0) {
			s.Breaker, s.FailedBoots = nil, 0
			tell("the breaker was reset: hosts may be switched off again")
		}
		return entries, nil
	})
	if err != nil {
		return fmt.Errorf("change the settings: %w", err)
	}
	if len(change.Hosts) > 0 {
		if err := c.changeHosts(ctx, by, change); err != nil {
			return err
		}
	}
	c.ordered()
	return nil
}

func (c *Admin) ordered() {
	if c.Ordered != nil {
		c.Ordered()
	}
}

// changed returns a copy of modes in which name has the mode, or has none if mode is empty.
func changed(modes map[string]energy.Mode, name string, mode energy.Mode) map[string]energy.Mode {
	next := map[string]energy.Mode{}
	maps.Copy(next, modes)
	if next[name] = mode; mode == "" {
		delete(next, name)
	}
	return next
}

// The largest numbers of characters of a reason, and of the name of an aggregate, as in Nova. Both are in the audit,
// whose texts have a few thousand characters.
const (
	longestReason = 1024
	longestName   = 255
)

// checkReason returns an Invalid fault for a reason that is too long.
func checkReason(reason string) error {
	if utf8.RuneCountInString(reason) > longestReason {
		return fault.Field("reason", "has more than %d characters", longestReason)
	}
	return nil
}

// check returns an Invalid fault if the change names an unknown mode or host, or has a text that is too long.
func (c *Admin) check(change *Change) error {
	if err := checkReason(change.Reason); err != nil {
		return err
	}
	for name := range change.Aggregates {
		if utf8.RuneCountInString(name) > longestName {
			return fault.Field("aggregates", "names an aggregate with more than %d characters", longestName)
		}
	}
	modes := map[string]energy.Mode{}
	if change.Mode != nil {
		modes["mode"] = *change.Mode
	}
	for name, mode := range change.Aggregates {
		modes["aggregates."+name] = mode
	}
	for name, mode := range change.Hosts {
		modes["hosts."+name] = mode
		if _, known := c.Inventory.Snapshot().Index(name); !known && mode != "" {
			return noHost(name)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(modes)) {
		if mode := modes[field]; mode != "" && !slices.Contains(energy.Modes, mode) {
			return fault.Field(field, "there is no mode %s; the modes are off, observe, recommend and auto", mode)
		}
	}
	return nil
}

// changeHosts stores the modes of single hosts, each with an entry in the audit.
func (c *Admin) changeHosts(ctx context.Context, by string, change Change) error {
	now, names := c.Now(), slices.Sorted(maps.Keys(change.Hosts))
	err := c.Records.ChangePower(ctx, job.Lease{}, names, func(stored map[string]energy.Record) (entries []energy.Entry, err error) {
		for _, name := range names {
			r := stored[name]
			r.Host, r.Mode = name, change.Hosts[name]
			stored[name] = r
			entries = append(entries, energy.Entry{At: now, Host: name, Kind: energy.EntrySetting, By: by,
				Text: fmt.Sprintf("its mode is %s now", cmp.Or(string(r.Mode), "that of its aggregates or of all hosts"))})
		}
		return entries, nil
	})
	return fault.While(err, "change the modes of hosts")
}

// Approve allows the controller to carry out the plan with an id. It fails with a Conflict fault if
// a newer plan exists.
func (c *Admin) Approve(ctx context.Context, by, plan string) error {
	now := c.Now()
	err := c.Settings.ChangeEnergySettings(ctx, job.Lease{}, func(s *energy.Settings) ([]energy.Entry, error) {
		switch {
		case s.Plan == nil || s.PlanID != plan:
			return nil, fault.New(fault.Conflict, "plan %s is not the current one; read the current plan before you approve it", plan)
		case s.Approved != nil:
			return nil, nil
		}
		s.Approved = &energy.Approval{Plan: plan, By: by, At: now}
		return []energy.Entry{{At: now, Kind: energy.EntrySetting, By: by, Text: fmt.Sprintf("the plan of %s was approved", s.Plan.At)}}, nil
	})
	if err != nil {
		return fmt.Errorf("approve the plan: %w", err)
	}
	c.ordered()
	return nil
}

// Hosts returns the hosts of the controller's last report and of the inventory, sorted by name.
func (c *Admin) Hosts(ctx context.Context) ([]HostStatus, error) {
	report, err := c.Reports.EnergyReport(ctx)
	if err != nil {
		return nil, err
	}
	records, err := c.Records.PowerRecords(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]energy.Observed{}
	for _, o := range report.Hosts {
		seen[o.Machine.Name] = o
	}
	for _, h := range c.Inventory.Snapshot().Hosts() {
		if _, known := seen[h.Name]; !known {
			seen[h.Name] = energy.Observed{Machine: energy.Machine{Name: h.Name, Claimed: span.Forever}}
		}
	}
	var all []HostStatus
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		r := records[name]
		r.Host = name
		all = append(all, HostStatus{Record: r, Observed: seen[name], Halt: report.Halt})
	}
	return all, nil
}

// Host returns the host with a name. It fails with a NotFound fault if there is none.
func (c *Admin) Host(ctx context.Context, name string) (HostStatus, error) {
	all, err := c.Hosts(ctx)
	if err != nil {
		return HostStatus{}, err
	}
	i, known := slices.BinarySearchFunc(all, name, func(h HostStatus, name string) int { return cmp.Compare(h.Observed.Machine.Name, name) })
	if !known {
		return HostStatus{}, noHost(name)
	}
	return all[i], nil
}

// Audit returns the latest entries of a host, or of all hosts; see History.
func (c *Admin) Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error) {
	return c.History.Audit(ctx, host, before, limit)
}

// Demand returns the measurements since an instant.
func (c *Admin) Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error) {
	return c.History.Demand(ctx, from)
}
