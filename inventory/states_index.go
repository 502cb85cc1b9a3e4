// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// locations maps the instances of one NewStates to their hosts. The first lookup builds it, since
// most requests need none.
type locations struct {
	rows   rows
	gather sync.Once
	// on is the index of each instance's host by instance id, the first if there are several;
	// others are the further hosts of instances on their way from one to another.
	on     map[string]int
	others map[string][]int
}

// of returns the places of the hosts that have the instance; it may be on two while it moves.
func (g *locations) of(instance string) []int {
	g.gather.Do(func() {
		count := 0
		for _, h := range g.rows.all() {
			count += len(h.Instances)
		}
		g.on, g.others = make(map[string]int, count), map[string][]int{}
		for i, h := range g.rows.all() {
			for n := range h.Instances {
				id := h.Instances[n].ID
				if _, known := g.on[id]; known {
					g.others[id] = append(g.others[id], i)
				} else {
					g.on[id] = i
				}
			}
		}
	})
	first, known := g.on[instance]
	if !known {
		return nil
	}
	return append([]int{first}, g.others[instance]...)
}

// HostsOf returns the indices of the hosts that an instance is on or on its way to, ascending;
// none for an unknown instance.
func (s *States) HostsOf(instance string) []int {
	hosts := slices.AppendSeq(s.locations.of(instance), s.received.All())
	slices.Sort(hosts)
	return slices.DeleteFunc(slices.Compact(hosts), func(i int) bool {
		return !slices.ContainsFunc(s.Host(i).Instances, func(o Instance) bool { return o.ID == instance })
	})
}

// WithProtected returns the states in which none of these instances, by id with its host, can
// be evicted.
func (s *States) WithProtected(hosts map[string]string) *States {
	if len(hosts) == 0 {
		return s
	}
	next := *s
	next.rows, next.columns, next.made = slices.Clone(s.rows), maps.Clone(s.columns), new(sync.Map)
	for instance, host := range hosts {
		i, there := s.Index(host)
		if !there {
			continue
		}
		at := slices.IndexFunc(next.Host(i).Instances, func(one Instance) bool { return one.ID == instance && one.Evictable() })
		if at < 0 {
			continue
		}
		h := next.Host(i).copied()
		next.rows.put(s.rows, i, h)
		for class, amount := range h.Instances[at].Holds {
			next.addUsed(s, i, class, 0, -amount)
		}
		h.Instances = slices.Clone(h.Instances)
		h.Instances[at].Protected = true
	}
	return &next
}

// SameHosts reports whether o is known to have the same hosts at the same indices, because both
// come from one NewStates. Results by index of one are then valid for the other.
func (s *States) SameHosts(o *States) bool { return o != nil && s.empty == o.empty }

// Changed iterates over the indices of the hosts that may differ between s and o, ascending.
// Both must come from one NewStates (SameHosts).
func (s *States) Changed(o *States) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n, page := range s.rows {
			before := o.rows[n]
			if &page[0] == &before[0] {
				continue
			}
			for i, h := range page {
				if h != before[i] && !yield(n*rowsOnPage+i) {
					return
				}
			}
		}
	}
}
