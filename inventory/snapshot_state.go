// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"reflect"
	"slices"
	"sync"
)

// differing returns the indices of the hosts of two readings that differ. onlyState is false if they differ in more than
// their state, or if the readings do not list the same hosts in the same order.
func differing(before, now []Host) (differ []int, onlyState bool) {
	if len(before) != len(now) {
		return nil, false
	}
	for i := range now {
		if reflect.DeepEqual(&before[i], &now[i]) {
			continue
		}
		was := before[i]
		was.takeState(&now[i])
		if !reflect.DeepEqual(&was, &now[i]) {
			return nil, false
		}
		differ = append(differ, i)
	}
	return differ, true
}

// takeState replaces what changes while a host works: what is on it, and whether it runs.
func (h *Host) takeState(now *Host) {
	h.Used, h.InstanceCount, h.Instances = now.Used, now.InstanceCount, now.Instances
	h.Problem, h.Power, h.BootSeconds, h.WakeDelay = now.Problem, now.Power, now.BootSeconds, now.WakeDelay
}

// withState returns the snapshot with the state of those hosts of a reading, which does not differ in anything else from the
// one of which the snapshot was made. Nothing that the snapshot knows of all hosts together depends on their state, except
// the values of properties.
func (s *Snapshot) withState(reading []Host, differ []int, overrides map[string]Override) *Snapshot {
	next := *s
	next.hosts = slices.Clone(s.hosts)
	for _, i := range differ {
		h := &next.hosts[s.index[reading[i].Name]]
		h.takeState(&reading[i])
		overrides[h.Name].applyPower(h)
	}
	next.catalogue = sync.OnceValue(next.properties)
	return &next
}
