// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// hostsAtOnce is the number of hosts that advance at the same time.
const hostsAtOnce = 8

// act advances every host that is being switched or should be.
func (c *Controller) act(ctx context.Context, held *job.Held, w *world, wants map[string]energy.Switch) error {
	hosts := slices.DeleteFunc(c.concerned(w, wants), func(host string) bool { return c.rests(w, host, wants) })
	var mu sync.Mutex
	var errs []error
	changed := false
	var next atomic.Int64
	advance := func() { // advances one host after another, since a new goroutine for each would cost more than the step
		for i := next.Add(1) - 1; i < int64(len(hosts)); i = next.Add(1) - 1 {
			did, err := c.advanceHost(ctx, held, w, hosts[i], wants)
			mu.Lock()
			changed = changed || did
			if err != nil {
				errs = append(errs, fmt.Errorf("host %s: %w", hosts[i], err))
			}
			mu.Unlock()
		}
	}
	var work sync.WaitGroup
	for range min(hostsAtOnce, len(hosts)) - 1 {
		work.Go(advance)
	}
	advance()
	work.Wait()
	if changed && c.Changed != nil {
		c.Changed()
	}
	return errors.Join(errs...)
}

// concerned returns the names, sorted, of the hosts that may need an action: those in wants, those
// that are not awake or have an operation, and those whose nova-compute Almanac has disabled; without those that are known
// to rest.
func (c *Controller) concerned(w *world, wants map[string]energy.Switch) []string {
	hosts := slices.Collect(maps.Keys(wants))
	if !w.all {
		for i := range w.places {
			if p := &w.places[i]; !p.rests {
				hosts = append(hosts, p.host.Name)
			}
		}
		slices.Sort(hosts)
		return slices.Compact(hosts)
	}
	for host, r := range w.records {
		if r.Phase != energy.Awake || r.Operation != "" {
			hosts = append(hosts, host)
		}
	}
	for host, s := range w.services {
		if s.Disabled && Ours(s.Reason) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// rests reports whether this step changes nothing for a host, without asking agents, Nova or
// Placement. It is true for most sleeping hosts. It marks the place of a host that rests until something about it changes.
func (c *Controller) rests(w *world, host string, wants map[string]energy.Switch) bool {
	record := w.recordOf(host)
	facts := c.seen(w, &record, wants)
	if record.Rests(&facts) {
		if i, there := w.placeOf(host); there && w.measure && (c.Cloud == nil || w.services != nil) {
			w.places[i].rests = true
		}
		return true
	}
	return c.staysSame(w, record, facts)
}

// staysSame is rests by the whole state machine.
func (c *Controller) staysSame(w *world, record energy.Record, facts energy.Facts) bool {
	facts.Halt = c.haltOf(w, record.Host)
	if record.Order != nil || record.MustLook(facts, c.Switching) {
		return false
	}
	step := energy.Advance(record, facts, c.Switching)
	return step.Nothing(&record)
}

// advanceHost makes one step for one host. It stores the decision before it carries it out.
func (c *Controller) advanceHost(ctx context.Context, held *job.Held, w *world, host string, wants map[string]energy.Switch) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	record := w.recordOf(host)
	facts := c.facts(ctx, w, &record, wants)
	facts.Epoch, facts.ID = held.Epoch, c.NewID()
	if record.MustLook(facts, c.Switching) {
		facts.Looked = true
		if facts.Occupied, err = c.occupied(ctx, w, host); err != nil {
			facts.Unknown = err.Error()
			c.Log.WarnContext(ctx, "could not determine whether the host is empty; it stays on", "host", host, "error", err)
		}
	}
	step := energy.Advance(record, facts, c.Switching)
	if step.Nothing(&record) {
		return false, nil
	}
	err = c.Records.ChangePower(ctx, held.Lease, []string{host}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
		r := stored[host]
		if r.Phase != record.Phase || r.Number != record.Number {
			return nil, fault.New(fault.Conflict, "the record of host %s has changed; the next step reads it again", host)
		}
		if !facts.Looked && r.MustLook(facts, c.Switching) {
			return nil, fault.New(fault.Conflict, "the record of host %s has changed; the next step reads it again", host)
		}
		r.Host = host
		step = energy.Advance(r, facts, c.Switching)
		stored[host] = step.Record
		return step.Entries, nil
	})
	if err != nil {
		return false, err
	}
	if err := c.count(ctx, held.Lease, step); err != nil {
		return true, err
	}
	c.log(ctx, step)
	c.announce(ctx, &record, &step)
	w.keep(host, step.Record)
	return len(step.Entries) > 0, c.do(ctx, held, &step)
}

// recordOf returns the record of a host, with only its name if there is none yet.
func (w *world) recordOf(host string) energy.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.records[host]
	r.Host = host
	return r
}

// keep replaces the record of a host, for the rest of the step.
func (w *world) keep(host string, r energy.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved = w.moved || w.records[host].Phase != r.Phase
	w.records[host] = r
	if i, there := w.placeOf(host); there {
		w.places[i].calm = false
	}
}

// facts returns the facts about a host, including what its agent answers about its order.
func (c *Controller) facts(ctx context.Context, w *world, r *energy.Record, wants map[string]energy.Switch) energy.Facts {
	f := c.known(w, r, wants)
	if r.Order != nil && f.Agent {
		o := *r.Order
		if o.State != energy.On {
			// Sending an order again asks for its outcome. An order to switch off relies on
			// a check that the host is empty, so it is valid only once: with a deadline in
			// the past the agent does not begin it now.
			o.Deadline = 0
		}
		outcome, err := c.Agents.Order(ctx, o)
		if err != nil {
			c.Log.DebugContext(ctx, "the agent did not answer an order", "host", r.Host, "order", o.ID, "error", err)
		} else {
			f.Outcome = &outcome
		}
	}
	return f
}

// known returns the facts about a host that the step has already read.
func (c *Controller) known(w *world, r *energy.Record, wants map[string]energy.Switch) energy.Facts {
	f := c.seen(w, r, wants)
	f.Halt = c.haltOf(w, r.Host)
	return f
}

// seen is known without Halt.
func (c *Controller) seen(w *world, r *energy.Record, wants map[string]energy.Switch) energy.Facts {
	f := energy.Facts{Now: w.now, Machine: w.fresh[r.Host], Agent: w.access[r.Host].States != nil, Cloudless: c.Cloud == nil}
	if f.Cloudless {
		if h := w.hostOf(r.Host); h != nil {
			f.BootSeconds = h.BootSeconds
		}
	}
	if _, wanted := wants[r.Host]; wanted {
		f.Want = new(wants[r.Host])
	}
	if s, known := w.services[r.Host]; known {
		f.Service = &energy.ServiceFact{Up: s.Up, Disabled: s.Disabled, Ours: s.Disabled && Ours(s.Reason), Reported: s.Reported}
	}
	return f
}

// haltOf returns the reason why a host must not be switched off now; "" if it may be.
func (c *Controller) haltOf(w *world, host string) string {
	if w.halt != "" {
		return w.halt
	}
	if i, there := w.placeOf(host); there {
		return c.forbids(w, &w.machines[i])
	}
	return ""
}

// forbids returns the reason why a host that is about to be switched off must stay on now; "" if it
// need not.
func (c *Controller) forbids(w *world, m *energy.Machine) string {
	switch {
	case m.Stays != "":
		return m.Stays
	case m.Busy:
		return "an instance was placed on it"
	case m.Claimed != span.Forever && c.Rules.WakeAt(m) <= w.now:
		return "it is reserved"
	}
	return ""
}

// occupied returns what is on a host, as Vacancy does; without a cloud, from the inventory.
func (c *Controller) occupied(ctx context.Context, w *world, host string) (string, error) {
	if c.Vacancy != nil {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return c.Vacancy.Occupied(ctx, host)
	}
	switch h := w.hostOf(host); {
	case h == nil:
		return "", fault.New(fault.Unavailable, "it is not in the inventory")
	case h.InstanceCount > 0 || !h.Used.IsZero():
		return "there are instances on it", nil
	}
	return "", nil
}

// do carries out the actions of a stored step. The next step repeats actions that fail.
func (c *Controller) do(ctx context.Context, held *job.Held, step *energy.Step) error {
	var errs []error
	r := &step.Record
	for _, action := range step.Actions {
		if err := held.Ensure(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		switch {
		case action == energy.Send && r.Order != nil:
			if _, err := c.Agents.Order(ctx, *r.Order); err != nil {
				errs = append(errs, fmt.Errorf("order it %s: %w", r.Order.State, err))
			}
		case action == energy.Close && c.Cloud != nil:
			if err := c.Cloud.Disable(ctx, r.Host, ReasonPrefix+r.Operation+": it is switched off while it is not needed"); err != nil {
				errs = append(errs, fmt.Errorf("close it to new instances: %w", err))
			}
		case (action == energy.Open || action == energy.Reopen) && c.Cloud != nil:
			operation := r.Operation
			if action == energy.Reopen {
				operation = ""
			}
			if err := c.Cloud.Enable(ctx, r.Host, operation); err != nil {
				errs = append(errs, fmt.Errorf("open it to instances: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// count updates the breaker after a boot that succeeded, or failed for the last time.
func (c *Controller) count(ctx context.Context, lease job.Lease, step energy.Step) error {
	if !step.Woke && !step.Failed {
		return nil
	}
	return c.Settings.ChangeEnergySettings(ctx, lease, func(s *energy.Settings) ([]energy.Entry, error) {
		if step.Woke {
			s.FailedBoots = 0
			return nil, nil
		}
		if s.FailedBoots++; c.MostFailed == 0 || s.FailedBoots < c.MostFailed || s.Breaker != nil {
			return nil, nil
		}
		s.Breaker = &energy.Stop{By: energy.Almanac, At: c.Now(), Reason: fmt.Sprintf("%d hosts in a row did not wake up", s.FailedBoots)}
		return []energy.Entry{{At: c.Now(), Kind: energy.EntryAlarm, By: energy.Almanac,
			Text: s.Breaker.Reason + ": nothing is switched off until an operator runs almanac energy reset-breaker"}}, nil
	})
}

func (c *Controller) log(ctx context.Context, step energy.Step) {
	for _, e := range step.Entries {
		c.Log.InfoContext(ctx, e.Text, "host", e.Host, "kind", e.Kind, "operation", e.Operation)
	}
}

// announce sends a notification when switching a host has begun, ended or failed.
func (c *Controller) announce(ctx context.Context, before *energy.Record, step *energy.Step) {
	after := &step.Record
	if c.Notices == nil || before.Phase == after.Phase {
		return
	}
	n := Switched{Host: after.Host, Operation: cmp.Or(after.Operation, before.Operation), To: after.Target, Reason: after.Reason,
		Urgent: before.Urgent || after.Urgent, Since: before.Since, At: c.Now()}
	switch after.Phase {
	case energy.Stopping, energy.Waking:
		n.Stage = Starts
	case energy.Asleep:
		n.Stage = Ends
	case energy.Failed:
		n.Stage = Fails
	case energy.Awake:
		if n.Stage = Ends; before.Phase == energy.Stopping {
			n.Stage, n.To = Fails, before.Target
		} else if before.Phase != energy.Waking {
			return
		}
	default:
		return
	}
	if err := c.Notices.Switched(ctx, n); err != nil {
		c.Log.WarnContext(ctx, "could not send the notification that a host is switched", "host", after.Host, "error", err)
	}
}
