// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"reflect"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

// differing returns the indices of the hosts of two readings that differ. onlyState is false if they differ in more than
// their state, or if the readings do not list the same hosts in the same order.
func differing(before, now []Host) (differ []int, onlyState bool) {
	if len(before) != len(now) {
		return nil, false
	}
	for i := range now {
		if before[i].identical(&now[i]) || reflect.DeepEqual(&before[i], &now[i]) {
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

// identical reports, at little cost, that two readings of a host are equal: they share all that they point to, as most readings
// of a host that has not changed do in a simulation. False means that they may differ.
func (h *Host) identical(o *Host) bool {
	return h.Name == o.Name && h.Zone == o.Zone && h.Reservable == o.Reservable && h.InstanceCount == o.InstanceCount &&
		h.Provider == o.Provider && h.Problem == o.Problem && h.Power == o.Power && h.BootSeconds == o.BootSeconds &&
		h.WakeDelay == o.WakeDelay && h.FlopsPerWatt == o.FlopsPerWatt && h.Hypervisor == o.Hypervisor && h.Number == o.Number &&
		h.Capabilities.Created == o.Capabilities.Created && h.Capabilities.Updated == o.Capabilities.Updated &&
		sameVector(&h.Capacity, &o.Capacity) && sameVector(&h.Used, &o.Used) &&
		sameSlice(h.Aggregates, o.Aggregates) && sameSlice(h.Traits, o.Traits) && sameSlice(h.Instances, o.Instances) &&
		sameMap(h.Properties, o.Properties) && sameMap(h.Capabilities.Texts, o.Capabilities.Texts)
}

// sameVector reports whether two vectors are equal and share their custom resources.
func sameVector(a, b *resource.Vector) bool {
	return a.VCPUs == b.VCPUs && a.MemoryMB == b.MemoryMB && a.DiskGB == b.DiskGB && sameMap(a.Custom, b.Custom)
}

// sameSlice reports whether two slices are the same part of one array. Equal elements elsewhere do not count.
func sameSlice[E any](a, b []E) bool {
	return len(a) == len(b) && (a == nil) == (b == nil) && (len(a) == 0 || &a[0] == &b[0])
}

// sameMap reports whether two variables refer to one map.
func sameMap[V any](a, b map[string]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// takeState replaces what changes while a host works: what is on it, and whether it runs.
func (h *Host) takeState(now *Host) {
	h.Used, h.InstanceCount, h.Instances = now.Used, now.InstanceCount, now.Instances
	h.Problem, h.Power, h.BootSeconds, h.WakeDelay = now.Problem, now.Power, now.BootSeconds, now.WakeDelay
}

// SameFacts reports whether the snapshots have the same hosts, in the same order, which differ in their state only: in what is
// on them, and in whether they run. False means that they may differ in more.
func (s *Snapshot) SameFacts(other *Snapshot) bool { return sameSlice(s.ranks, other.ranks) }

// withState returns the snapshot with the state of those hosts of a reading. The reading differs in nothing else from the one
// that the snapshot was made from. Nothing that the snapshot knows of all hosts together depends on their state, except
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
