// SPDX-License-Identifier: Apache-2.0

// Package preemption chooses the victims of a request: the cheapest set of preemptible
// instances on a host that frees enough room (paper 001, Algorithm 5, with its errata E001-1
// and E001-3). It only decides; pkg/eviction evicts them.
package preemption

import (
	"cmp"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Cost is the cost of terminating an instance.
type Cost interface {
	// Name returns the value of [preemptible] victim_cost.
	Name() string
	// Unit returns the unit of the cost, such as "s".
	Unit() string
	// Of returns the cost at now, which is not negative.
	Of(i *inventory.Instance, now span.Instant) int64
}

// Victims are instances of one host that free enough room together.
type Victims struct {
	Instances []*inventory.Instance // by ID
	// Costs contains the cost of each of Instances; Cost is their sum.
	Costs []int64
	Cost  int64
}

// IDs returns the IDs of the Instances.
func (v Victims) IDs() []string {
	var ids []string
	for _, i := range v.Instances {
		ids = append(ids, i.ID)
	}
	return ids
}

// Without returns the victims without those for which drop returns true.
func (v Victims) Without(drop func(i *inventory.Instance) bool) (left Victims) {
	for n, i := range v.Instances {
		if !drop(i) {
			left.Instances, left.Costs = append(left.Instances, i), append(left.Costs, v.Costs[n])
			left.Cost = plus(left.Cost, v.Costs[n])
		}
	}
	return left
}

// Evictor finds victims. It is safe for concurrent use and must not be copied.
type Evictor struct {
	Cost Cost

	index index
}

// Victims returns the set of instances of host i whose eviction makes room for resources, with (1)
// the least cost, (2) the fewest instances, (3) the smallest IDs. The set is empty if there is room
// already. ok is false if evicting all evictable instances would not make enough room.
//
// The search is exact for realistic hosts, such as 64 instances and three resource classes. It
// stops after some milliseconds, which can happen if the costs of that many instances are
// proportional to their amounts and the request is several times larger than each of them. Then the
// victims may not be the cheapest, but they free enough room and none is superfluous.
func (e *Evictor) Victims(s *inventory.States, i int, resources map[string]int64, now span.Instant) (v Victims, ok bool) {
	demands := demandsOf(s, resources)
	lacks := make([]int64, 0, len(demands))
	classes := make([]string, 0, len(demands))
	for _, d := range demands {
		switch lack, ok := d.lack(i); {
		case !ok:
			return Victims{}, false
		case lack > 0:
			lacks, classes = append(lacks, lack), append(classes, d.class)
		}
	}
	if len(lacks) == 0 {
		return Victims{}, true
	}
	candidates := evictable(s.Host(i))
	w := searches.Get().(*search)
	defer searches.Put(w)
	w.begin(lacks)
	for _, one := range candidates {
		amounts := w.add(e.Cost.Of(one, now))
		for d, class := range classes {
			amounts[d] = one.Holds[class]
		}
	}
	places, ok := w.cheapest()
	for _, place := range places {
		cost := max(0, e.Cost.Of(candidates[place], now))
		v.Instances, v.Costs = append(v.Instances, candidates[place]), append(v.Costs, cost)
		v.Cost = plus(v.Cost, cost)
	}
	return v, ok
}

// evictable returns the evictable instances of a host, sorted by ID.
func evictable(h *inventory.HostState) []*inventory.Instance {
	var all []*inventory.Instance
	for i := range h.Instances {
		if h.Instances[i].Evictable() {
			all = append(all, &h.Instances[i])
		}
	}
	slices.SortFunc(all, func(a, b *inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// demand is the amount of a resource class that a request needs.
type demand struct {
	class  string
	amount int64
	of     *inventory.Column
}

// demandsOf returns the demands of a request in the order of their classes.
func demandsOf(s *inventory.States, resources map[string]int64) []demand {
	demands := make([]demand, 0, len(resources))
	for _, class := range slices.Sorted(maps.Keys(resources)) {
		if amount := resources[class]; amount > 0 {
			demands = append(demands, demand{class, amount, s.Column(class)})
		}
	}
	return demands
}

// lack returns the amount that is missing on host i; 0 or less if there is enough. ok is false if
// Placement would refuse the amount even on an empty host. A class that cannot be counted has no
// amounts in the column (inventory.HostState.Split).
func (d demand) lack(i int) (lack int64, ok bool) {
	c := d.of
	if d.amount > c.Limit[i] || d.amount < c.Min[i] || d.amount > c.Max[i] || d.amount%max(1, c.Step[i]) != 0 {
		return 0, false
	}
	return d.amount - (c.Limit[i] - c.Used[i]), true
}
