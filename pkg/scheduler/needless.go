// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
)

// dropNeedlessVictims removes victims that need not leave once all instances of a request are
// placed on the hosts of s: a later instance may evict a larger victim whose room is enough for
// both. The most expensive victims are removed first.
func dropNeedlessVictims(s *inventory.States, picks []Pick) {
	type leaving struct{ pick, victim int }
	var all []leaving
	for p := range picks {
		for v := range picks[p].Victims.Instances {
			all = append(all, leaving{p, v})
		}
	}
	slices.SortFunc(all, func(a, b leaving) int {
		x, y := &picks[a.pick].Victims, &picks[b.pick].Victims
		return cmp.Or(cmp.Compare(y.Costs[b.victim], x.Costs[a.victim]), cmp.Compare(x.Instances[a.victim].ID, y.Instances[b.victim].ID))
	})
	stays := map[*inventory.Instance]bool{}
	for _, one := range all {
		instance := picks[one.pick].Victims.Instances[one.victim]
		stays[instance] = true
		stays[instance] = roomy(s, picks, picks[one.pick].Take.Host, stays)
	}
	for p := range picks {
		picks[p].Victims = picks[p].Victims.Without(func(i *inventory.Instance) bool { return stays[i] })
		picks[p].Take.Victims = picks[p].Victims.IDs()
	}
}

// roomy reports whether a host has room for everything placed on it although the instances in
// stays do not leave.
func roomy(s *inventory.States, picks []Pick, host int, stays map[*inventory.Instance]bool) bool {
	needs := map[string]int64{}
	for _, p := range picks {
		if p.Take.Host != host {
			continue
		}
		for class, amount := range p.Take.Resources {
			needs[class] += amount
		}
		for _, victim := range p.Victims.Instances {
			if !stays[victim] {
				for class, amount := range victim.Holds {
					needs[class] -= amount
				}
			}
		}
	}
	for class, amount := range needs {
		if c := s.Column(class); amount > 0 && amount > c.Limit[host]-c.Used[host] {
			return false
		}
	}
	return true
}
