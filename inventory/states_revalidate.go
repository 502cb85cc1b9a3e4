// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"maps"
	"reflect"
	"slices"
)

// Revalidate returns the takes, which were planned on the states before, with the host indices of
// s. standing is true if the plan is still valid, which requires of each of its hosts that nothing
// of any resource class has been taken, no instance has come, no victim has left or can no longer
// be evicted, and everything else about the host and all aggregates is the same. More free
// resources, or an instance that has left, are no obstacle.
//
// Every filter judges a host by that host and the aggregates alone, so a plan whose hosts are
// unchanged is as good as one made on s.
func (s *States) Revalidate(before *States, takes []Take) (moved []Take, standing bool) {
	if s == before {
		return takes, true
	}
	same := s.SameHosts(before)
	if !same && !reflect.DeepEqual(s.aggregates, before.aggregates) {
		return nil, false
	}
	moved = slices.Clone(takes)
	for n, t := range takes {
		was := before.Host(t.Host)
		if !same {
			i, there := s.Index(was.Name)
			if !there {
				return nil, false
			}
			moved[n].Host = i
		}
		if now := s.Host(moved[n].Host); now != was && !now.stillSupplies(was, t.Victims) {
			return nil, false
		}
	}
	return moved, true
}

// stillSupplies reports whether h can supply what it could when it was as before, and the
// victims can still leave.
func (h *HostState) stillSupplies(before *HostState, victims []string) bool {
	return h.IOOps <= before.IOOps && reflect.DeepEqual(h.lasting(), before.lasting()) &&
		maps.EqualFunc(h.Stocks, before.Stocks, Stock.atLeast) && h.hasNoneBut(before.Instances) &&
		!slices.ContainsFunc(victims, func(id string) bool { return !h.stillEvictable(before, id) })
}

// lasting returns the part of a host that neither placements nor departures change.
func (h *HostState) lasting() HostState {
	lasting := *h
	lasting.Stocks, lasting.Instances, lasting.IOOps = nil, nil, 0
	return lasting
}

// atLeast reports whether s can supply what it could when it was as before.
func (s Stock) atLeast(before Stock) bool {
	if s.Used > before.Used {
		return false
	}
	s.Used = before.Used
	return s == before
}

// hasNoneBut reports whether each instance of the host is among others.
func (h *HostState) hasNoneBut(others []Instance) bool {
	known := make(map[string]bool, len(others))
	for i := range others {
		known[others[i].ID] = true
	}
	return !slices.ContainsFunc(h.Instances, func(i Instance) bool { return !known[i.ID] })
}

// stillEvictable reports whether the instance can be evicted and holds what it held before.
func (h *HostState) stillEvictable(before *HostState, id string) bool {
	now, was := h.instance(id), before.instance(id)
	return now != nil && was != nil && now.Evictable() && maps.Equal(now.Holds, was.Holds)
}

// instance returns the instance with the id; nil if it is not on the host.
func (h *HostState) instance(id string) *Instance {
	at := slices.IndexFunc(h.Instances, func(i Instance) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return &h.Instances[at]
}
