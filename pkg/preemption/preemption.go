// Package preemption says which preemptible instances make room on a host for a request:
// the cheapest of those that are enough (paper 001, Algorithm 5, with its errata E001-1
// and E001-3). It only decides; pkg/eviction evicts them.
package preemption

import (
	"cmp"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Cost is what it costs to terminate an instance.
type Cost interface {
	// Name is that of the option.
	Name() string
	// Unit says in what it is counted, as "s".
	Unit() string
	// Of gives the cost at now, 0 or more.
	Of(i *inventory.Instance, now span.Instant) int64
}

// Victims are instances of one host that make room together.
type Victims struct {
	Instances []*inventory.Instance // by ID
	// Costs are those of the Instances, at the same place; Cost is their sum.
	Costs []int64
	Cost  int64
}

// IDs gives those of the Instances.
func (v Victims) IDs() []string {
	var ids []string
	for _, i := range v.Instances {
		ids = append(ids, i.ID)
	}
	return ids
}

// Without gives those of whom drop does not say yes.
func (v Victims) Without(drop func(i *inventory.Instance) bool) (left Victims) {
	for n, i := range v.Instances {
		if !drop(i) {
			left.Instances, left.Costs = append(left.Instances, i), append(left.Costs, v.Costs[n])
			left.Cost = plus(left.Cost, v.Costs[n])
		}
	}
	return left
}

// Evictor finds victims. It is safe for concurrent use, and not to be copied.
type Evictor struct {
	Cost Cost

	index index
}

// Victims gives the cheapest instances of host i without which it has room for resources:
// (1) the least cost, (2) the fewest, (3) the smallest ids. There are none where it has
// room as it is. ok is false where it has none even without all that can be evicted.
//
// That holds for what occurs, as 64 instances on a host with three resources. A search that
// takes more than some milliseconds is given up, as it may be where the costs of so many
// follow from their amounts and the request is for several times what each has: then the
// victims may not be the cheapest. They are enough, and none of them is needless, all the
// same.
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

// evictable gives the instances of a host that can be evicted, by ID.
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

// demand is how much is asked for of a resource class.
type demand struct {
	class  string
	amount int64
	of     *inventory.Column
}

// demandsOf gives them in the order of their classes.
func demandsOf(s *inventory.States, resources map[string]int64) []demand {
	demands := make([]demand, 0, len(resources))
	for _, class := range slices.Sorted(maps.Keys(resources)) {
		if amount := resources[class]; amount > 0 {
			demands = append(demands, demand{class, amount, s.Column(class)})
		}
	}
	return demands
}

// lack is how much of it is missing on host i; 0 or less where nothing is. ok is false
// where Placement does not give away such an amount there, however empty the host is. Of a
// class that cannot be counted (inventory.HostState.Split) the column has nothing.
func (d demand) lack(i int) (lack int64, ok bool) {
	c := d.of
	if d.amount > c.Limit[i] || d.amount < c.Min[i] || d.amount > c.Max[i] || d.amount%max(1, c.Step[i]) != 0 {
		return 0, false
	}
	return d.amount - (c.Limit[i] - c.Used[i]), true
}
