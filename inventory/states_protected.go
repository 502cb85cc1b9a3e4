package inventory

import (
	"maps"
	"slices"
	"sync"
)

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
