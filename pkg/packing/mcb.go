// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// MCB is one of the multi-capacity bin packing heuristics of section 3.4. They differ in the key
// that sorts the tasks.
type MCB struct {
	Name       string
	key        func(cpu, memory float64) float64
	descending bool
}

// MCBs are MCB1 to MCB8.
var MCBs = []MCB{
	{"mcb1", sum, false}, {"mcb2", difference, false}, {"mcb3", ratio, false}, {"mcb4", larger, false},
	{"mcb5", sum, true}, {"mcb6", difference, true}, {"mcb7", ratio, true}, {"mcb8", larger, true},
}

var mcb8 = MCBs[7]

func sum(cpu, memory float64) float64        { return cpu + memory }
func difference(cpu, memory float64) float64 { return max(cpu, memory) - min(cpu, memory) }
func larger(cpu, memory float64) float64     { return max(cpu, memory) }

// ratio returns the larger number divided by the smaller one; infinity if a task needs no CPU or no
// memory (erratum E002-8).
func ratio(cpu, memory float64) float64 {
	if smaller := min(cpu, memory); smaller > 0 {
		return max(cpu, memory) / smaller
	}
	return math.Inf(1)
}

// width is the width of the interval of yields at which the bisection ends.
const width = 0.001

// hardly is a yield at which CPU does not limit the placement. With 0 all ratios would be infinite,
// and the order of the tasks arbitrary.
const hardly = 1e-18

// Place searches for the largest yield at which the heuristic packs all tasks. It tries the upper
// bound of Problem.Bound first, then bisects between 0 and the bound. As in the paper, the search
// assumes that a heuristic that fails at one yield fails at all larger ones, which is not always so
// (erratum E002-6). If no yield that it tries succeeds, Place packs the tasks once more with almost
// no CPU, so that only memory limits it.
func (m MCB) Place(ctx context.Context, p *Problem) (Placement, error) {
	if crowded := p.crowded(); crowded != nil {
		return nil, crowded
	}
	tasks := p.tasks()
	packer := newPacker(p.Hosts, tasks, m)
	high := p.Bound()
	if found := packer.pack(high); found != nil {
		return p.placement(tasks, found), nil
	}
	var best []int
	near := min(width, high/8) // with a thousand jobs on a host, width would be too coarse
	for low := 0.0; high-low > near; {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		middle := (low + high) / 2
		if found := packer.pack(middle); found != nil {
			best = append(best[:0], found...)
			low = middle
		} else {
			high = middle
		}
	}
	if best == nil {
		best = packer.pack(hardly)
	}
	if best == nil {
		return nil, &Infeasible{Reason: fmt.Sprintf("%s finds no placement in which the memory of all tasks fits", m.Name)}
	}
	return p.placement(tasks, best), nil
}

// packer packs the same tasks at several yields, and reuses its memory between them.
type packer struct {
	hosts []Host
	mcb   MCB
	tasks []task
	lists [2]list // tasks that take at least as much CPU as memory, and the others
	at    []int   // host of each task
	// may reports whether a task may be on a host; a nil function means that it always may.
	may func(t *task, host int) bool
}

// list contains the tasks that are not placed yet, in their order.
type list struct {
	ranks []uint64
	items []item
	least Host // the least CPU and the least memory that any task takes
}

// item is a task with the CPU and the memory that it needs at the current yield.
type item struct {
	cpu, memory float64
	task        int
}

// newPacker returns a packer of tasks onto hosts, with its lists empty.
func newPacker(hosts []Host, tasks []task, m MCB) *packer {
	k := &packer{hosts: hosts, mcb: m, tasks: tasks, at: make([]int, len(tasks))}
	for l := range k.lists {
		k.lists[l] = list{ranks: make([]uint64, 0, len(tasks)), items: make([]item, 0, len(tasks))}
	}
	return k
}

// pack returns the host of each task if each gets the yield; nil if the heuristic does not find
// room for all. The next call overwrites the returned slice.
func (k *packer) pack(yield float64) []int {
	k.sort(yield)
	left, need, has := len(k.tasks), Host{}, Host{}
	for _, t := range k.tasks {
		need.add(1, yield*t.cpu, t.memory)
	}
	for _, host := range k.hosts {
		has.add(1, host.CPU+slack, host.Memory+slack)
	}
	for h, host := range k.hosts {
		if need.CPU > has.CPU+slack || need.Memory > has.Memory+slack {
			return nil // the tasks left need more than the hosts left have
		}
		placed, taken := k.fill(h, host)
		if left -= placed; left == 0 {
			return k.at
		}
		need.add(-1, taken.CPU, taken.Memory)
		has.add(-1, host.CPU+slack, host.Memory+slack)
	}
	return nil
}

func (h *Host) add(sign, cpu, memory float64) {
	h.CPU += sign * cpu
	h.Memory += sign * memory
}

// sort fills the two lists, each in the order of the heuristic. Tasks with equal keys keep the
// order of the problem.
func (k *packer) sort(yield float64) {
	for l := range k.lists {
		k.lists[l].ranks, k.lists[l].items, k.lists[l].least = k.lists[l].ranks[:0], k.lists[l].items[:0], Host{math.Inf(1), math.Inf(1)}
	}
	// A rank holds the bits of the key, which sort like the key because it is not negative,
	// with the number of the task in place of the last bits. Sorting integers is much
	// faster than sorting with a comparison function. With 500 tasks twelve digits of the
	// key remain.
	numbers := uint64(1)<<bits.Len(uint(len(k.tasks))) - 1
	for i := range k.tasks {
		t := &k.tasks[i]
		cpu := yield * t.cpu
		rank := math.Float64bits(k.mcb.key(cpu, t.memory))
		if k.mcb.descending {
			rank = ^rank
		}
		l := &k.lists[0]
		if t.memory > cpu {
			l = &k.lists[1]
		}
		l.ranks = append(l.ranks, rank&^numbers|uint64(i))
	}
	for i := range k.lists {
		l := &k.lists[i]
		slices.Sort(l.ranks)
		for _, rank := range l.ranks {
			t := int(rank & numbers)
			one := item{cpu: yield * k.tasks[t].cpu, memory: k.tasks[t].memory, task: t}
			l.items = append(l.items, one)
			l.least = Host{min(l.least.CPU, one.cpu), min(l.least.Memory, one.memory)}
		}
	}
}

// fill puts tasks on a host until none fits. It prefers the list that reduces the imbalance of the
// free capacity. It returns how many tasks it placed, and what they need in sum. The host only
// becomes fuller, so a task that does not fit once never will, and fill passes through each list
// only once.
func (k *packer) fill(h int, host Host) (placed int, taken Host) {
	free := Host{host.CPU + slack, host.Memory + slack}
	var seen, kept [2]int
	for {
		first := 0
		if free.Memory > free.CPU {
			first = 1
		}
		found := k.next(h, first, free, &seen, &kept)
		if found == nil {
			found = k.next(h, 1-first, free, &seen, &kept)
		}
		if found == nil {
			break
		}
		free.add(-1, found.cpu, found.memory)
		taken.add(1, found.cpu, found.memory)
		k.at[found.task] = h
		placed++
	}
	for i := range k.lists {
		l := &k.lists[i]
		l.items = append(l.items[:kept[i]], l.items[seen[i]:]...)
	}
	return placed, taken
}

// next returns the next task of a list that fits on host h; nil if there is none. It moves the
// tasks that it skips to the front of the list; kept is the number of tasks there.
func (k *packer) next(h, of int, free Host, seen, kept *[2]int) *item {
	l := &k.lists[of]
	if free.CPU < l.least.CPU || free.Memory < l.least.Memory {
		return nil
	}
	i, w := seen[of], kept[of]
	for i < len(l.items) && (l.items[i].cpu > free.CPU || l.items[i].memory > free.Memory || k.may != nil && !k.may(&k.tasks[l.items[i].task], h)) {
		l.items[w] = l.items[i]
		i, w = i+1, w+1
	}
	seen[of], kept[of] = min(i+1, len(l.items)), w
	if i == len(l.items) {
		return nil
	}
	return &l.items[i]
}
