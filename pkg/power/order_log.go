// SPDX-License-Identifier: Apache-2.0

package power

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// remembered is the number of orders of a host whose outcome an agent stores.
const remembered = 4

// orderLog contains the orders of an agent, and implements the rules for accepting them.
type orderLog struct {
	epoch int64 // the newest of all orders
	hosts map[string][]entry
}

// entry is an accepted order. The entries of a host are in the order in which they were accepted.
type entry struct {
	order   energy.Order
	outcome energy.Outcome
	begun   bool
	// resumed is true if an earlier run of the agent accepted the order, and may have begun it.
	resumed bool
}

// waits reports whether nothing has been done for the order yet.
func (e *entry) waits() bool { return e.outcome.Progress == energy.OrderAccepted && !e.begun }

// find returns the entry of an order of the host; nil if there is none.
func (b *orderLog) find(host, id string) *entry {
	for i, e := range b.hosts[host] {
		if e.order.ID == id {
			return &b.hosts[host][i]
		}
	}
	return nil
}

// accept accepts an order, or returns the progress of one that was accepted before. changed is true
// if the log has changed.
func (b *orderLog) accept(o energy.Order, now span.Instant, canCarryOut func() error) (result energy.Outcome, changed bool) {
	if known := b.find(o.Host, o.ID); known != nil {
		return known.outcome, false
	}
	if o.Epoch < b.epoch {
		return refused("a newer controller has taken over: its epoch is %d, and the order has %d; after the database was replaced, "+
			"remove the agent's state file", b.epoch, o.Epoch), false
	}
	changed = o.Epoch > b.epoch
	b.epoch = o.Epoch
	if err := canCarryOut(); err != nil {
		return refused("%v", err), changed
	}
	if now > o.Deadline {
		return tooLate(o, now), changed
	}
	accepted := b.hosts[o.Host]
	if n := len(accepted); n > 0 {
		last := accepted[n-1].order
		if cmp.Or(cmp.Compare(o.Epoch, last.Epoch), cmp.Compare(o.Number, last.Number)) <= 0 {
			return refused("order %d is not newer than order %d, the last one accepted for host %s", o.Number, last.Number, o.Host), changed
		}
	}
	for i := range accepted {
		if accepted[i].waits() {
			accepted[i].outcome = superseded(&accepted[i], o)
		}
	}
	b.hosts[o.Host] = append(forget(accepted), entry{order: o, outcome: energy.Outcome{Progress: energy.OrderAccepted}})
	return energy.Outcome{Progress: energy.OrderAccepted}, true
}

// forget removes old orders to make room for one more. It keeps those in progress.
func forget(orders []entry) []entry {
	for i := 0; len(orders) >= remembered && i < len(orders); {
		if orders[i].outcome.Progress == energy.OrderAccepted {
			i++
			continue
		}
		orders = slices.Delete(orders, i, i+1)
	}
	return orders
}

// next returns the order that the agent should begin now, and marks it as begun; found is false if
// there is none. ended is true if other orders have ended because their deadlines are over.
func (b *orderLog) next(host string, now span.Instant) (e entry, found, ended bool) {
	for i := range b.hosts[host] {
		e := &b.hosts[host][i]
		switch {
		case !e.waits():
		case now > e.order.Deadline && !e.resumed:
			e.outcome, ended = tooLate(e.order, now), true
		default:
			e.begun = true
			return *e, true, ended
		}
	}
	return entry{}, false, ended
}

// resume makes the last unfinished order of each host due again, and ends the orders before it.
func (b *orderLog) resume() {
	for _, orders := range b.hosts {
		for i := range orders {
			e := &orders[i]
			if e.outcome.Progress != energy.OrderAccepted {
				continue
			}
			e.resumed = true
			if last := orders[len(orders)-1]; e.order.ID != last.order.ID {
				e.outcome = superseded(e, last.order)
			}
		}
	}
}

func refused(format string, args ...any) energy.Outcome {
	return energy.Outcome{Progress: energy.OrderRefused, Reason: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) energy.Outcome {
	return energy.Outcome{Progress: energy.OrderFailed, Reason: fmt.Sprintf(format, args...)}
}

func tooLate(o energy.Order, now span.Instant) energy.Outcome {
	return refused("the order had to begin by %v, and it is %v", o.Deadline, now)
}

// superseded returns the outcome of an order that a later one has replaced: failed if it was under way
// before a restart, refused if it had not begun.
func superseded(e *entry, by energy.Order) energy.Outcome {
	if e.resumed {
		return failed("the agent was restarted while the order was under way, and order %d (%s) came after it", by.Number, by.State)
	}
	return refused("order %d (%s) came before this one had begun", by.Number, by.State)
}

// before is the state of the log for one host.
type before struct {
	host   string
	epoch  int64
	orders []entry
}

func (b *orderLog) copy(host string) before {
	return before{host, b.epoch, slices.Clone(b.hosts[host])}
}

func (b *orderLog) restore(was before) { b.epoch, b.hosts[was.host] = was.epoch, was.orders }
