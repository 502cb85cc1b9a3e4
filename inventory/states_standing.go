package inventory

import (
	"maps"
	"reflect"
	"slices"
)

// Standing returns the takes, which were planned on before, as takes of the hosts of s.
// standing reports whether each of their hosts can give what it could: nothing of any
// resource class has been taken, no instance has come, no victim has left or can no longer
// be evicted, and all else that is known of the host, and of all aggregates, is the same.
// That more is free, or an instance has gone, is no obstacle.
//
// Whether a host may be chosen depends on that host and the aggregates alone, as the verdict of
// every filter does; so a plan whose hosts stand might as well have been made on s.
func (s *States) Standing(before *States, takes []Take) (moved []Take, standing bool) {
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
		if now := s.Host(moved[n].Host); now != was && !now.stands(was, t.Victims) {
			return nil, false
		}
	}
	return moved, true
}

// stands reports whether h can give what it could when it was as before, and the victims
// can leave as they could.
func (h *HostState) stands(before *HostState, victims []string) bool {
	return h.IOOps <= before.IOOps && reflect.DeepEqual(h.lasting(), before.lasting()) &&
		maps.EqualFunc(h.Stocks, before.Stocks, Stock.gives) && h.hasNoneBut(before.Instances) &&
		!slices.ContainsFunc(victims, func(id string) bool { return !h.yields(before, id) })
}

// lasting is what neither takes nor what leaves changes of a host.
func (h *HostState) lasting() HostState {
	lasting := *h
	lasting.Stocks, lasting.Instances, lasting.IOOps = nil, nil, 0
	return lasting
}

// gives reports whether s can give what it could when it was as before.
func (s Stock) gives(before Stock) bool {
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

// yields reports whether the instance can be evicted, and holds what it held before.
func (h *HostState) yields(before *HostState, id string) bool {
	now, was := h.instance(id), before.instance(id)
	return now != nil && was != nil && now.Evictable() && maps.Equal(now.Holds, was.Holds)
}

// instance returns the instance with the id; nil where it is not on the host.
func (h *HostState) instance(id string) *Instance {
	at := slices.IndexFunc(h.Instances, func(i Instance) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return &h.Instances[at]
}
