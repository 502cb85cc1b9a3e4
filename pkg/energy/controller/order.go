// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Order stores a manual order for a host by a user with the id by, and returns the state of the
// host. If the inventory does not contain the host, its release deletes its record.
//
// Order fails with a NotFound fault for an unknown host. It fails with a Conflict fault if the
// order cannot be carried out or would break a promise: switching off a host that has instances,
// whose property forbids it, or that is reserved before it would be up again. A host that is held
// off without an end counts as failed, and its reservations are healed; such an order is refused
// only if the host is reserved now.
func (c *Admin) Order(ctx context.Context, by, host string, order energy.Hold) (HostStatus, error) {
	order.By, order.At = by, c.Now()
	if err := checkReason(order.Reason); err != nil {
		return HostStatus{}, err
	}
	if c.forgets(host, &order) {
		return c.forget(ctx, host, &order)
	}
	status, claimed, err := c.asked(ctx, host, &order)
	if err != nil {
		return HostStatus{}, err
	}
	status.Outcome = outcome(&order, &status, claimed)
	err = c.Records.ChangePower(ctx, job.Lease{}, []string{host}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
		r := stored[host]
		r.Host = host
		text := fmt.Sprintf("ordered %s", order.Action)
		if order.Reason != "" {
			text += ": " + order.Reason
		}
		if order.Until != 0 {
			text += fmt.Sprintf(" (until %s)", order.Until)
		}
		if order.Action == energy.Release {
			r.Hold, r.Quarantine = nil, ""
		} else {
			r.Hold = &order
		}
		stored[host], status.Record = r, r
		return []energy.Entry{{At: order.At, Host: host, Kind: energy.EntryManual, By: by, Operation: r.Operation, Text: text}}, nil
	})
	if err != nil {
		return HostStatus{}, fmt.Errorf("store the order: %w", err)
	}
	c.ordered()
	return status, nil
}

// Foresee returns the state of the host and, as a sentence, the effect that an order would have
// now. It fails as Order would, and stores nothing.
func (c *Admin) Foresee(ctx context.Context, host string, order energy.Hold) (HostStatus, string, error) {
	order.At = c.Now()
	if err := checkReason(order.Reason); err != nil {
		return HostStatus{}, "", err
	}
	if c.forgets(host, &order) {
		records, err := c.Records.PowerRecords(ctx)
		r, known := records[host]
		if err == nil && !known {
			err = noHost(host)
		}
		return HostStatus{Record: r}, "its record is deleted: it is not in the inventory", err
	}
	status, claimed, err := c.asked(ctx, host, &order)
	if err != nil {
		return HostStatus{}, "", err
	}
	return status, outcome(&order, &status, claimed), nil
}

func noHost(name string) error { return fault.New(fault.NotFound, "there is no host %s", name) }

// forgets reports whether the order releases a host that has left the inventory; its record is then
// deleted.
func (c *Admin) forgets(host string, o *energy.Hold) bool {
	_, known := c.Inventory.Snapshot().Index(host)
	return o.Action == energy.Release && !known
}

// forget deletes the record of a host that has left the inventory.
func (c *Admin) forget(ctx context.Context, host string, o *energy.Hold) (HostStatus, error) {
	err := c.Records.ChangePower(ctx, job.Lease{}, []string{host}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
		if reflect.DeepEqual(stored[host], energy.Record{Host: host}) {
			return nil, noHost(host)
		}
		delete(stored, host)
		text := "released; its record is deleted because it is not in the inventory"
		if o.Reason != "" {
			text += ": " + o.Reason
		}
		return []energy.Entry{{At: o.At, Host: host, Kind: energy.EntryManual, By: o.By, Text: text}}, nil
	})
	if err != nil {
		return HostStatus{}, fmt.Errorf("delete the record of the host: %w", err)
	}
	c.ordered()
	return HostStatus{Record: energy.Record{Host: host}}, nil
}

// asked returns the state of the host of an order, and the start of its first claim. It reads the
// reservations, because the last measurement may be older. It returns a fault for invalid orders.
func (c *Admin) asked(ctx context.Context, host string, o *energy.Hold) (HostStatus, span.Instant, error) {
	status, err := c.Host(ctx, host)
	if err != nil {
		return HostStatus{}, 0, err
	}
	claimed, is := claims(c.Promises.Live(span.Span{Start: o.At, End: span.Forever}), o.At)[host]
	if !is {
		claimed = span.Forever
	}
	return status, claimed, c.sensible(o, &status, claimed)
}

// sensible returns an Invalid fault for an unknown action or an end that is not in the future, and
// a Conflict fault if an order cannot be carried out or would break a promise. claimed is the start
// of the host's first claim; Forever means that it has none.
func (c *Admin) sensible(o *energy.Hold, h *HostStatus, claimed span.Instant) error {
	m := &h.Observed.Machine
	switch {
	case !slices.Contains([]energy.ManualAction{energy.HoldOn, energy.HoldOff, energy.HoldStandby, energy.Release, energy.Test}, o.Action):
		return fault.Field("action", "there is no action %s; the actions are on, off, standby, release and test", o.Action)
	case o.Until != 0 && o.Until <= o.At:
		return fault.Field("until", "must be in the future")
	case o.Action == energy.Release:
		return nil
	case len(m.States) == 0:
		return fault.New(fault.Conflict, "no known agent can switch host %s; see 'almanac energy status'. In mode off "+
			"nothing is measured; 'almanac energy mode observe' changes that", m.Name)
	case o.Action == energy.HoldOn:
		return nil
	case o.Action == energy.HoldStandby && !slices.Contains(m.States, energy.Standby):
		return fault.New(fault.Conflict, "the machine of host %s has no standby", m.Name)
	}
	hosts := c.Inventory.Snapshot()
	if i, known := hosts.Index(m.Name); known {
		if why := c.Admission.Forbids(hosts.Host(i)); why != "" {
			return fault.New(fault.Conflict, "host %s cannot be switched off: %s", m.Name, why)
		}
	}
	return c.free(o, h, claimed)
}

// free returns a Conflict fault if a host is in use, or if it is reserved before it would be up
// again.
func (c *Admin) free(o *energy.Hold, h *HostStatus, claimed span.Instant) error {
	m, phase := &h.Observed.Machine, h.Record.Phase
	boot := m.BootSeconds + c.Rules.BootMargin
	switch {
	case m.Busy:
		return fault.New(fault.Conflict, "host %s has instances; move them first", m.Name)
	case claimed <= o.At:
		return fault.New(fault.Conflict, "host %s is reserved now", m.Name)
	case claimed == span.Forever:
		return nil
	case o.Until != 0 && o.Until.Add(boot) > claimed:
		return fault.New(fault.Conflict, "host %s is reserved from %v on, and would not be up before %v", m.Name, claimed, o.Until.Add(boot))
	case o.Action == energy.Test && (phase == energy.Awake || phase == energy.Draining) && o.At.Add(max(c.Rules.Horizon, 2*boot)) >= claimed:
		return fault.New(fault.Conflict, "host %s is reserved from %v on, which is too soon for a test", m.Name, claimed)
	}
	return nil
}

// outcome returns, as a sentence, the effect of an order that sensible accepts.
func outcome(o *energy.Hold, h *HostStatus, claimed span.Instant) string {
	phase := h.Record.Phase
	up := phase == energy.Awake || phase == energy.Waking
	switch {
	case o.Action == energy.Release:
		return "the plan decides again"
	case h.Observed.Reading.Untouchable != "":
		return "accepted, but it waits: " + h.Observed.Reading.Untouchable
	case o.Action == energy.HoldOn && up:
		return "it is already on, and stays on"
	case o.Action == energy.HoldOn:
		return "switched on"
	case o.Action == energy.Test && !up:
		return "switched on, to test that it wakes"
	}
	if h.Halt != "" && phase != energy.Asleep {
		return "accepted, but it waits: nothing is switched off now: " + h.Halt
	}
	text := "closed to new instances, and switched off once it is empty"
	if phase == energy.Asleep {
		text = "it is already asleep, and stays asleep"
	}
	switch {
	case o.Action == energy.Test:
		text += "; then switched on again"
	case o.Until == 0 && claimed != span.Forever:
		text += fmt.Sprintf("; it is reserved from %v on, and counts as failed, so that its reservations are healed", claimed)
	}
	return text
}
