package besteffort

import (
	"cmp"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// unit is what is handled at once: the virtual machines of a parallel request that do not
// run, or one of a serial one. It also stands for what is left of one that runs and will be
// suspended.
type unit struct {
	request *Request
	members []member
	// running says that it runs now, and is what is left of it.
	running bool
	// ran says that some of it has run: it was suspended, or will be.
	ran bool
	// What a start takes, what is left to run at most, and what its end takes.
	lead, rest, stop int64
	suspend          int64
	least            int64 // for how long it must have its nodes to be started at all
}

// member is a virtual machine of a unit.
type member struct {
	vm   *VM
	node int          // where its image or its memory is, or comes to; -1 is nowhere
	at   span.Instant // from when on it can start there
	rest int64        // to run
	// memory says that it is its memory: it can start there only, or where it is moved to.
	memory bool
	// image says that it needs its image where it starts.
	image bool
}

// moves says that the memory of a member is elsewhere than where it would go on.
func (u *unit) moves(at spot) bool {
	for i := range u.members {
		if m := &u.members[i]; m.memory && m.node != at.nodes[i] {
			return true
		}
	}
	return false
}

// length is for how long a unit has its nodes where nothing comes between.
func (u *unit) length() int64 { return plus(plus(u.lead, u.rest), u.stop) }

// sorted gives the requests in the order of the queue, each with its virtual machines in the
// order of their numbers: of ids that differ in length the shorter is first.
func sorted(requests []Request) []*Request {
	all := make([]*Request, len(requests))
	for i := range requests {
		r := requests[i]
		r.VMs = slices.Clone(r.VMs)
		slices.SortFunc(r.VMs, func(a, b VM) int {
			return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
		})
		all[i] = &r
	}
	slices.SortFunc(all, func(a, b *Request) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// over is when a phase that is under way is over. What is late is expected to take as long
// again as it is late, so that nothing is put in its place before it is seen to be over.
func (p *planner) over(vm *VM) span.Instant {
	if vm.Until > p.now {
		return vm.Until
	}
	return p.now.Add(max(1, int64(p.now-max(vm.Until, vm.Since))))
}

// waiting gives the member that a virtual machine is which does not run, and is not about
// to; false for all others.
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

// unit makes one of members, with what is to be known of it.
func (p *planner) unit(r *Request, members []member) *unit {
	o, n, memory := p.rules.Overheads, len(members), r.Shape.MemoryMB
	u := &unit{request: r, members: members, stop: o.stop(n), suspend: o.suspension(memory, n)}
	resume := o.resumption(memory, n)
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
		u.least = math.MaxInt64 // it has only to be shut down
	}
	return u
}

// groups puts what is handled at once together: all of a parallel request, else each alone.
func groups[T any](r *Request, all []T) [][]T {
	if len(all) == 0 {
		return nil
	}
	if r.Parallel {
		return [][]T{all}
	}
	return slices.Collect(slices.Chunk(all, 1))
}
