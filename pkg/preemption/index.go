// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ordered is a Cost whose cyclic order of instances does not change with time, although the costs
// do.
type ordered interface {
	Cost
	// key returns the key of an instance for at; it is valid since the instant since. An instance
	// that never costs anything has the key nothing.
	key(i *inventory.Instance) (key int64, since span.Instant)
	// at returns the value of Of for the instance with that key.
	at(key int64, now span.Instant) int64
	// turn returns the key of the cheapest instance at now, apart from those with the key nothing.
	// Costs rise with the keys from this one to the highest, and continue to rise from the lowest
	// key up to it.
	turn(now span.Instant) int64
}

// nothing is the key of an instance that never costs anything.
const nothing = math.MinInt64

// index caches the order of the instances for the latest States.
type index struct {
	mu   sync.Mutex
	kept *order
}

// order contains the evictable instances on the hosts of states, except those in ahead, sorted by
// ordered.key. Their costs change with time, and this order does not.
type order struct {
	states  *inventory.States
	cost    ordered
	classes []string // columns of amounts
	entries []entry  // by key
	never   int      // number of entries with the key nothing
	from    []int    // by host: its first instance in keys; one more for the end
	keys    []int64
	amounts []int64      // by instance and class
	since   span.Instant // the order is valid from then on
	ahead   map[int]bool // hosts left out because of times in the future
}

// entry is an instance on a host, and its position in keys.
type entry struct {
	key            int64
	host, instance int32
}

// classesKept is the largest number of resource classes in an order.
const classesKept = 8

// Prepare computes in advance the order that Costs needs. That takes some milliseconds with
// thousands of hosts, which the first request then does not need to wait for. Calling it is
// optional.
func (e *Evictor) Prepare(s *inventory.States, now span.Instant) { e.index.of(s, e.Cost, now) }

// of returns the order of the instances of s by cost; nil if the cost has none.
func (x *index) of(s *inventory.States, cost Cost, now span.Instant) *order {
	c, ok := cost.(ordered)
	if !ok {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kept == nil || !s.SameHosts(x.kept.states) || x.kept.stale(s) {
		x.kept = newOrder(s, c, now)
	}
	if now < x.kept.since {
		return nil
	}
	return x.kept
}

// stale reports whether so many hosts have changed that a new order is faster.
func (o *order) stale(s *inventory.States) bool {
	changed := 0
	for range s.Changed(o.states) {
		changed++
	}
	return changed*8 > s.Len()
}

// newOrder returns all instances that may be evicted, sorted by their cost at now.
func newOrder(s *inventory.States, cost ordered, now span.Instant) *order {
	o := &order{states: s, cost: cost, classes: classesOf(s), from: make([]int, 1, s.Len()+1), ahead: map[int]bool{}}
	count := 0
	for host := range s.Len() {
		count += len(s.InstancesOn(host))
	}
	o.entries, o.keys = make([]entry, 0, count), make([]int64, 0, count)
	o.amounts = make([]int64, 0, count*len(o.classes))
	for host := range s.Len() {
		o.gather(host, s.InstancesOn(host), now)
		o.from = append(o.from, len(o.keys))
	}
	slices.SortFunc(o.entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	o.never = o.below(nothing + 1)
	return o
}

// below returns the number of entries with a lower key.
func (o *order) below(key int64) int {
	at, _ := slices.BinarySearchFunc(o.entries, key, func(e entry, key int64) int { return cmp.Compare(e.key, key) })
	return at
}

// gather enters the instances of a host. If one of them begins only later, the host is set aside.
func (o *order) gather(host int, instances []inventory.Instance, now span.Instant) {
	first := len(o.keys)
	for i := range instances {
		one := &instances[i]
		if !one.Evictable() {
			continue
		}
		key, since := o.cost.key(one)
		if since > now {
			o.ahead[host] = true
			o.keys, o.amounts, o.entries = o.keys[:first], o.amounts[:first*len(o.classes)], o.entries[:first]
			return
		}
		o.since = max(o.since, since)
		o.keys = append(o.keys, key)
		o.entries = append(o.entries, entry{key, int32(host), int32(len(o.keys) - 1)})
		for _, class := range o.classes {
			o.amounts = append(o.amounts, one.Holds[class])
		}
	}
}

// classesOf returns the resource classes that most instances use, judged by the first evictable
// instance on each of some hundred hosts.
func classesOf(s *inventory.States) []string {
	counts := map[string]int{}
	for host := 0; host < s.Len(); host += 1 + s.Len()/1024 {
		instances := s.InstancesOn(host)
		if i := slices.IndexFunc(instances, func(i inventory.Instance) bool { return i.Evictable() }); i >= 0 {
			for class := range instances[i].Holds {
				counts[class]++
			}
		}
	}
	classes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return classes[:min(len(classes), classesKept)]
}

// rising visits the instances with their costs, from the cheapest at now to the most expensive,
// until visit returns false.
func (o *order) rising(now span.Instant, visit func(e *entry, cost int64) (on bool)) {
	turn := max(o.never, o.below(o.cost.turn(now)))
	for _, part := range [][]entry{o.entries[:o.never], o.entries[turn:], o.entries[o.never:turn]} {
		for i := range part {
			if !visit(&part[i], o.cost.at(part[i].key, now)) {
				return
			}
		}
	}
}
