package power

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// remembered is how many orders of a host an agent can still tell the outcome of.
const remembered = 4

// book is what an agent remembers of its orders, and the rules by which it takes them.
type book struct {
	epoch int64 // the newest seen at all
	hosts map[string][]entry
}

// entry is an order that was taken; those of a host are in the order of taking.
type entry struct {
	order   energy.Order
	outcome energy.Outcome
	begun   bool
	// resumed: it was taken by an earlier run of the agent, which may have begun with it.
	resumed bool
}

// waits says that nothing has been done for the order yet.
func (e *entry) waits() bool { return e.outcome.Progress == energy.Accepted && !e.begun }

func (b *book) find(host, id string) *entry {
	for i, e := range b.hosts[host] {
		if e.order.ID == id {
			return &b.hosts[host][i]
		}
	}
	return nil
}

// take takes an order, or says what has become of it where it was taken before. It says
// whether the book has changed.
func (b *book) take(o energy.Order, now span.Instant, reaches func() error) (result energy.Outcome, changed bool) {
	if known := b.find(o.Host, o.ID); known != nil {
		return known.outcome, false
	}
	if o.Epoch < b.epoch {
		return refused("a newer controller has taken over: its epoch is %d, and the order has %d; after the database was made anew, "+
			"remove the agent's state file", b.epoch, o.Epoch), false
	}
	changed = o.Epoch > b.epoch
	b.epoch = o.Epoch
	if err := reaches(); err != nil {
		return refused("%v", err), changed
	}
	if now > o.Deadline {
		return tooLate(o, now), changed
	}
	taken := b.hosts[o.Host]
	if n := len(taken); n > 0 {
		last := taken[n-1].order
		if cmp.Or(cmp.Compare(o.Epoch, last.Epoch), cmp.Compare(o.Number, last.Number)) <= 0 {
			return refused("order %d is not newer than order %d, the last one taken for host %s", o.Number, last.Number, o.Host), changed
		}
	}
	for i := range taken {
		if taken[i].waits() {
			taken[i].outcome = superseded(&taken[i], o)
		}
	}
	b.hosts[o.Host] = append(forget(taken), entry{order: o, outcome: energy.Outcome{Progress: energy.Accepted}})
	return energy.Outcome{Progress: energy.Accepted}, true
}

// forget makes room for one more order. What is under way stays.
func forget(taken []entry) []entry {
	for i := 0; len(taken) >= remembered && i < len(taken); {
		if taken[i].outcome.Progress == energy.Accepted {
			i++
			continue
		}
		taken = slices.Delete(taken, i, i+1)
	}
	return taken
}

// next gives the order to begin with now, and marks it as begun; ended says that others
// have ended meanwhile, since their deadlines are over.
func (b *book) next(host string, now span.Instant) (e entry, found, ended bool) {
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

// resume makes the orders that an earlier run has left begin again: the last of each host.
func (b *book) resume() {
	for _, taken := range b.hosts {
		for i := range taken {
			e := &taken[i]
			if e.outcome.Progress != energy.Accepted {
				continue
			}
			e.resumed = true
			if last := taken[len(taken)-1]; e.order.ID != last.order.ID {
				e.outcome = superseded(e, last.order)
			}
		}
	}
}

func refused(format string, args ...any) energy.Outcome {
	return energy.Outcome{Progress: energy.Refused, Reason: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) energy.Outcome {
	return energy.Outcome{Progress: energy.Failed, Reason: fmt.Sprintf(format, args...)}
}

func tooLate(o energy.Order, now span.Instant) energy.Outcome {
	return refused("the order had to begin by %v, and it is %v", o.Deadline, now)
}

func superseded(e *entry, by energy.Order) energy.Outcome {
	if e.resumed {
		return failed("the agent was restarted while the order was under way, and order %d (%s) came after it", by.Number, by.State)
	}
	return refused("order %d (%s) came before this one had begun", by.Number, by.State)
}

// before is what a book was for one host.
type before struct {
	host  string
	epoch int64
	taken []entry
}

func (b *book) copy(host string) before { return before{host, b.epoch, slices.Clone(b.hosts[host])} }

func (b *book) restore(was before) { b.epoch, b.hosts[was.host] = was.epoch, was.taken }
