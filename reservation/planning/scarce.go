// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
)

// feature is something that a request can require of a host. It is scarce if fewer than half of
// the hosts of the pool have it.
type feature struct {
	kind featureKind
	name string // of a class, a trait or a property
}

type featureKind int

const (
	hasClass    featureKind = iota // some of a custom resource class
	hasTrait                       // a custom trait; CPU traits do not count, since each generation brings new ones
	hasProperty                    // a property that is not false, 0 or empty
	isLarge                        // at least twice the median of vCPUs or memory, and more than half of the pool have
)

// HostOrder contains the hosts of a snapshot in the orders that searches need.
type HostOrder struct {
	snapshot  *inventory.Snapshot
	scarce    [][]feature // of each host of the pool, by index in the snapshot
	features  []feature   // all scarce ones, each once
	efficient []int       // indexes by FLOPS per watt, then name
	preferred []int       // indexes by the number of scarce features, then as in efficient
}

func OrderHosts(s *inventory.Snapshot) *HostOrder {
	l := &HostOrder{snapshot: s, scarce: scarcities(s), efficient: make([]int, s.Len())}
	seen := make(map[feature]bool)
	for place := range s.Len() {
		l.efficient[s.EfficiencyRank(place)] = place
		for _, f := range l.scarce[place] {
			seen[f] = true
		}
	}
	l.features = slices.Collect(maps.Keys(seen))
	l.preferred = fewestFirst(l.efficient, func(place int) int { return len(l.scarce[place]) })
	return l
}

// fewestFirst sorts hosts by the number that has returns for each, the smallest first. The sort is
// stable, and fast for small numbers.
func fewestFirst(hosts []int, has func(host int) int) []int {
	order := make([]int, 0, len(hosts))
	for n := 0; len(order) < len(hosts); n++ {
		for _, host := range hosts {
			if has(host) == n {
				order = append(order, host)
			}
		}
	}
	return order
}

// scarcities returns the scarce features of each host of the pool, by index in the snapshot.
func scarcities(s *inventory.Snapshot) [][]feature {
	var pool []int
	for place, h := range s.Hosts() {
		if h.Reservable {
			pool = append(pool, place)
		}
	}
	large := largerThanMost(s, pool)
	count, all := make(map[feature]int), make([][]feature, s.Len())
	for _, place := range pool {
		all[place] = features(s.Host(place))
		if large(s.Host(place)) {
			all[place] = append(all[place], feature{kind: isLarge})
		}
		for _, f := range all[place] {
			count[f]++
		}
	}
	for _, place := range pool {
		all[place] = slices.DeleteFunc(all[place], func(f feature) bool { return 2*count[f] >= len(pool) })
	}
	return all
}

func features(h *inventory.Host) (list []feature) {
	for class, amount := range h.Capacity.Custom {
		if amount > 0 {
			list = append(list, feature{hasClass, class})
		}
	}
	for _, trait := range h.Traits {
		if strings.HasPrefix(trait, "CUSTOM_") {
			list = append(list, feature{hasTrait, trait})
		}
	}
	for name, value := range h.Properties {
		if !empty(value) {
			list = append(list, feature{hasProperty, name})
		}
	}
	return list
}

// empty reports whether a property is false, 0 or empty.
func empty(v inventory.Value) bool {
	switch v := v.Any().(type) {
	case bool:
		return !v
	case float64:
		return v == 0
	case string:
		return v == ""
	case []string:
		return len(v) == 0
	default:
		return true
	}
}

// largerThanMost returns a function that reports whether a host has much more vCPUs or memory
// than most hosts of the pool.
func largerThanMost(s *inventory.Snapshot, pool []int) func(h *inventory.Host) bool {
	if len(pool) == 0 {
		return func(*inventory.Host) bool { return false }
	}
	much := func(of func(h *inventory.Host) int64) int64 {
		amounts := make([]int64, len(pool))
		for i, place := range pool {
			amounts[i] = of(s.Host(place))
		}
		slices.Sort(amounts)
		median := amounts[(len(amounts)-1)/2]
		// An amount that half of the pool has is not much.
		return max(2*median, amounts[len(amounts)/2]+1)
	}
	vcpus := much(func(h *inventory.Host) int64 { return h.Capacity.VCPUs })
	memory := much(func(h *inventory.Host) int64 { return h.Capacity.MemoryMB })
	return func(h *inventory.Host) bool { return h.Capacity.VCPUs >= vcpus || h.Capacity.MemoryMB >= memory }
}

// asksFor reports whether the request names the feature.
func (s refusing) asksFor(f feature) bool {
	switch f.kind {
	case hasClass:
		return s.request.Resources.Custom[f.name] > 0
	case hasTrait:
		return s.filter.Mentions(f.name)
	case hasProperty:
		return s.filter.Mentions("$" + f.name)
	default:
		return s.filter.Mentions("$vcpus") || s.filter.Mentions("$memory_mb") || s.filter.Mentions("$free_ram_mb")
	}
}

// unasked returns how many scarce features a host has that the request does not name: criterion 4
// of docs/concepts.md "Which hosts".
func (s refusing) unasked(number int) int {
	n := 0
	for _, f := range s.view.Hosts.scarce(number) {
		if !s.asksFor(f) {
			n++
		}
	}
	return n
}

// inOrder returns the numbers of the existing hosts, sorted by criteria 4 to 6.
func (s refusing) inOrder() []int {
	r := s.view.Hosts
	if !slices.ContainsFunc(r.hostOrder.features, s.asksFor) {
		return r.preferred
	}
	unasked := make([]int, len(r.names))
	for _, number := range r.efficient {
		unasked[number] = s.unasked(number)
	}
	return fewestFirst(r.efficient, func(number int) int { return unasked[number] })
}
