// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// unit is what is handled at once: the VMs of a parallel request that do not run, or one VM of a
// serial request. It is also what is left of a VM that runs and will be suspended.
type unit struct {
	request *Request
	members []member
	// running reports whether it is what is left of a VM that runs now.
	running bool
	// ran reports whether a part of it has run: it was suspended, or will be.
	ran bool
	// Seconds for its start, for the rest of its work at most, and for its end.
	lead, rest, stop int64
	suspend          int64
	least            int64 // the shortest time with its nodes for which it is started
}

// member is a VM of a unit.
type member struct {
	vm   *VM
	node int          // where its image or its memory is, or comes to; -1 is nowhere
	at   span.Instant // from when on it can start there
	rest int64        // to run
	// memory reports whether it has memory on the node: it can start only there, or where the
	// memory moves.
	memory bool
	// image reports whether it needs its image where it starts.
	image bool
}

// moves reports whether a member resumes on another node than the one with its memory.
func (u *unit) moves(at spot) bool {
	for i := range u.members {
		if m := &u.members[i]; m.memory && m.node != at.nodes[i] {
			return true
		}
	}
	return false
}

// byNumber compares VMs of a request by their numbers: the shorter of two ids comes first.
func byNumber(a, b VM) int { return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID)) }

// length returns for how long a unit has its nodes if nothing intervenes.
func (u *unit) length() int64 { return plus(plus(u.lead, u.rest), u.stop) }

// sorted returns the requests in the order of the queue, each with its VMs in the order of their
// numbers.
func sorted(requests []Request) []*Request {
	all := make([]*Request, len(requests))
	for i := range requests {
		r := requests[i]
		r.VMs = slices.Clone(r.VMs)
		slices.SortFunc(r.VMs, byNumber)
		all[i] = &r
	}
	slices.SortFunc(all, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// over returns when the phase of a VM ends. A phase that is late is expected to last as long
// again as it is late, so that nothing else is planned in its place too early.
func (p *planner) over(vm *VM) span.Instant {
	if vm.Until > p.now {
		return vm.Until
	}
	return p.now.Add(max(1, int64(p.now-max(vm.Until, vm.Since))))
}

// waiting returns a VM as a member, if it neither runs nor is about to; false otherwise.
func (p *planner) waiting(r *Request, vm *VM) (member, bool) {
	m := member{vm: vm, node: -1, at: p.now, rest: r.Duration, image: r.Image.ID != ""}
	node, placed := p.byName[vm.Node]
	if placed {
		m.node = node
	}
	switch vm.Phase {
	case Waiting:
		m.node = -1
		return m, true
	case Staging:
		m.at = max(p.now, vm.Until)
		return m, true
	case Suspended:
	case Suspending, Moving:
		m.at = p.over(vm)
	default:
		return m, false
	}
	m.memory, m.image = true, false
	m.rest = max(0, r.Duration-vm.Ran)
	return m, true
}

// unit creates a unit of members.
func (p *planner) unit(r *Request, members []member) *unit {
	o, n := p.rules.Overheads, len(members)
	u := &unit{request: r, members: members}
	u.stop, u.suspend = p.endSeconds(r, n)
	resume := o.resumption(r.Shape.MemoryMB, n)
	for _, m := range members {
		u.rest = max(u.rest, m.rest)
		if m.memory {
			u.ran, u.lead = true, max(u.lead, resume)
		} else {
			u.lead = max(u.lead, o.Boot)
		}
	}
	runs := max(1, whole(p.rules.Worthwhile*float64(plus(u.suspend, resume))))
	u.least = plus(plus(u.lead, min(runs, u.rest)), u.suspend)
	if u.rest == 0 {
		u.least = math.MaxInt64 // only its shutdown is left
	}
	return u
}

// endSeconds returns how long the shutdown and the suspension of n VMs of a request take.
func (p *planner) endSeconds(r *Request, n int) (stop, suspend int64) {
	o := p.rules.Overheads
	return o.stop(n), o.suspension(r.Shape.MemoryMB, n)
}

// moveSeconds returns how long the memory of a VM of a request moves.
func (p *planner) moveSeconds(r *Request) int64 { return p.rules.Overheads.move(r.Shape.MemoryMB) }

// groups groups what is handled at once: all VMs of a parallel request, else each alone.
func groups[T any](r *Request, all []T) [][]T {
	if len(all) == 0 {
		return nil
	}
	if r.Parallel {
		return [][]T{all}
	}
	return slices.Collect(slices.Chunk(all, 1))
}
