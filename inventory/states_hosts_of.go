package inventory

import (
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
