// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// keep plans for the VMs that are on the nodes: it stops those whose time is up and suspends
// those that must leave. It creates the units of the queue.
func (p *planner) keep() {
	for _, r := range p.requests {
		for i := range r.VMs {
			p.hold(r, &r.VMs[i])
		}
	}
	for _, r := range p.requests {
		var residents []resident
		var idle []member
		first := len(p.units)
		for i := range r.VMs {
			vm := &r.VMs[i]
			if m, waits := p.waiting(r, vm); waits {
				idle = append(idle, m)
			} else if at, on := p.resident(r, vm); on {
				residents = append(residents, at)
			}
		}
		for _, group := range groups(r, residents) {
			p.stay(r, group)
		}
		for _, group := range groups(r, idle) {
			p.units = append(p.units, p.unit(r, group))
		}
		slices.SortFunc(p.units[first:], func(a, b *unit) int { return byNumber(*a.members[0].vm, *b.members[0].vm) })
	}
	p.number()
}

// hold reserves what a VM uses while an operation on it is under way, which the plan cannot
// change.
func (p *planner) hold(r *Request, vm *VM) {
	switch vm.Phase {
	case Starting, Resuming, Suspending, Stopping:
		if i, known := p.byName[vm.Node]; known {
			p.nodes[i].take(span.Span{Start: p.now, End: p.over(vm)}, r.Shape)
			p.next(p.over(vm))
		}
	case Moving:
		p.next(p.over(vm))
	}
}

// resident is a VM that runs, or will run when it is there.
type resident struct {
	vm   *VM
	node int
	from span.Instant // when it runs
	up   span.Instant // when its time is up
}

// resident returns where a VM is and from when and until when; false if it is on no known node.
func (p *planner) resident(r *Request, vm *VM) (resident, bool) {
	node, known := p.byName[vm.Node]
	at := resident{vm: vm, node: node, from: p.now, up: vm.Until}
	switch vm.Phase {
	case Running:
		if at.up == 0 {
			at.up = vm.Since.Add(r.Duration - vm.Ran)
		}
	case Starting, Resuming:
		at.from = p.over(vm)
		at.up = at.from.Add(max(0, r.Duration-vm.Ran))
	default:
		return at, false
	}
	return at, known
}

// stay plans for residents that are handled at once, until they end or must leave.
func (p *planner) stay(r *Request, group []resident) {
	stop, suspend := p.endSeconds(r, len(group))
	leave := span.Forever
	onNode := map[int]int{}
	for _, at := range group {
		onNode[at.node]++
		end := max(at.up, at.from, p.now).Add(stop)
		if until, ender := p.nodes[at.node].lasts(at.from, end, r.Shape, onNode[at.node]); ender >= 0 {
			leave = min(leave, until)
		}
	}
	var left []member
	for _, at := range group {
		until := max(at.up, at.from, p.now).Add(stop)
		if leave < until {
			var rest member
			if rest, until = p.leave(r, at, leave, suspend, stop); rest.vm != nil {
				left = append(left, rest)
			}
		} else {
			p.run(r, at, stop)
		}
		node := p.nodes[at.node]
		if until <= p.now {
			node.leaving = node.leaving.Add(r.Shape)
		}
		node.host(r, span.Span{Start: at.from, End: until})
	}
	if len(left) > 0 {
		u := p.unit(r, left)
		u.running = true
		p.units = append(p.units, u)
	}
}

// run keeps a resident that need not leave, and stops it when its time is up.
func (p *planner) run(r *Request, at resident, stop int64) {
	if at.vm.Phase == Running && at.up <= p.now {
		p.act(Stop, r, at.vm, at.vm.Node, p.now.Add(stop), "Its time is up.")
		return
	}
	p.next(at.up)
}

// leave suspends a resident so that the suspension ends when a reservation begins, or as soon as
// possible. It returns what is left of the resident, and until when it has its node.
func (p *planner) leave(r *Request, at resident, leave span.Instant, suspend, stop int64) (member, span.Instant) {
	begin := max(p.now, at.from, min(leave-span.Instant(suspend), at.up))
	if at.vm.Phase == Running && begin == p.now {
		if at.up <= p.now && stop <= suspend {
			p.act(Stop, r, at.vm, at.vm.Node, p.now.Add(stop), "Its time is up.")
			return member{}, p.now.Add(stop)
		}
		p.act(Suspend, r, at.vm, at.vm.Node, p.now.Add(suspend), p.whyLeave(leave, suspend))
	}
	p.next(begin)
	until := begin.Add(suspend)
	return member{vm: at.vm, node: at.node, at: max(until, leave), rest: max(0, int64(at.up-begin)), memory: true}, until
}

// whyLeave returns why a VM is suspended.
func (p *planner) whyLeave(leave span.Instant, suspend int64) string {
	why := fmt.Sprintf("A reservation has its place on the host from %v on.", max(leave, p.now))
	switch {
	case p.now.Add(suspend) > leave:
		why += " It came too late for the suspension to be over by then."
	case !p.rules.Suspend:
		why += " Nothing is suspended by the rules, but a promise comes first."
	}
	return why
}
