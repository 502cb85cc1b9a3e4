// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Source lists the hosts, from a file or from a cloud. The result belongs to the caller, except for
// the maps and slices inside the hosts, which nobody may change.
type Source interface {
	Hosts(ctx context.Context) ([]Host, error)
}

// Snapshot is one state of all hosts, sorted by name. It never changes and is safe for
// concurrent reading. Callers must not write to the hosts that it returns.
type Snapshot struct {
	hosts     []Host
	index     map[string]int
	ranks     []int // EfficiencyRank by host
	kinds     map[string]Kind
	longest   map[string]int // elements of the longest list, by property
	classes   []string       // custom resource classes that hosts have, sorted
	hidden    map[string]bool
	catalogue func() []Property
	left      []string        // the properties that were left out, as sentences
	capable   map[string]Kind // the types of the properties that some host has as a capability
}

// NewSnapshot returns a snapshot of the hosts, with the overrides, by host name, applied, and with
// sorted traits and aggregates. An override of an unknown host has no effect. hidden contains the
// properties that only admins may use.
//
// It returns an Invalid fault if a name is empty or repeated, or if a property has two types, no
// value, or the name of a built-in one.
func NewSnapshot(hosts []Host, overrides map[string]Override, hidden map[string]bool) (*Snapshot, error) {
	return checked(layOver(hosts, overrides, hidden))
}

// newSnapshotThatAgrees returns a snapshot without the properties whose type differs from the type
// that an operator has set, on the first such host by name, or that capabilities have.
func newSnapshotThatAgrees(hosts []Host, overrides map[string]Override, hidden map[string]bool) (*Snapshot, error) {
	s := layOver(hosts, overrides, hidden)
	kinds := kindsSet(s.hosts, overrides)
	maps.Copy(kinds, s.capable)
	s.leaveOut(kinds)
	return checked(s)
}

// layOver returns a snapshot of the hosts with the overrides, sorted by name, without its indexes.
func layOver(hosts []Host, overrides map[string]Override, hidden map[string]bool) *Snapshot {
	s := &Snapshot{hosts: slices.Clone(hosts), hidden: maps.Clone(hidden), capable: capabilityKinds(hosts, overrides)}
	for i := range s.hosts {
		h := &s.hosts[i]
		overrides[h.Name].apply(h)
		overrides[h.Name].withCapabilities(h, s.capable)
		h.Traits, h.Aggregates = inOrder(h.Traits), inOrder(h.Aggregates)
	}
	slices.SortStableFunc(s.hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// checked completes a snapshot with its indexes; an error if hosts contradict each other.
func checked(s *Snapshot) (*Snapshot, error) {
	if err := s.indexNames(); err != nil {
		return nil, err
	}
	if err := s.gatherKinds(); err != nil {
		return nil, err
	}
	s.rankEfficiency()
	s.gatherClasses()
	s.catalogue = sync.OnceValue(s.properties)
	return s, nil
}

// leaveOut removes properties whose type differs from that in kinds.
func (s *Snapshot) leaveOut(kinds map[string]Kind) {
	if len(kinds) == 0 {
		return
	}
	for i := range s.hosts {
		h := &s.hosts[i]
		kept := make(map[string]Value, len(h.Properties))
		for _, name := range slices.Sorted(maps.Keys(h.Properties)) {
			value := h.Properties[name]
			if kind, set := kinds[name]; set && kind != value.kind {
				s.left = append(s.left, fmt.Sprintf("%s is a %s on %s, but was set as a %s", name, value.kind, h.Name, kind))
				continue
			}
			kept[name] = value
		}
		if len(kept) < len(h.Properties) {
			h.Properties = kept
		}
	}
}

// indexNames fills the index of names; an error if one is missing or used twice.
func (s *Snapshot) indexNames() error {
	s.index = make(map[string]int, len(s.hosts))
	for i := range s.hosts {
		name := s.hosts[i].Name
		if name == "" {
			return fault.Field("name", "a host has no name")
		}
		if _, taken := s.index[name]; taken {
			return fault.Field("name", "two hosts are named %q", name)
		}
		s.index[name] = i
	}
	return nil
}

// gatherKinds determines the type of each property. It visits hosts and properties in a fixed
// order, so that the same inventory always results in the same error.
func (s *Snapshot) gatherKinds() error {
	s.kinds, s.longest = make(map[string]Kind), make(map[string]int)
	first := make(map[string]string) // the first host with the property
	for i := range s.hosts {
		h := &s.hosts[i]
		s.longest["traits"] = max(s.longest["traits"], len(h.Traits))
		s.longest["aggregates"] = max(s.longest["aggregates"], len(h.Aggregates))
		for _, name := range slices.Sorted(maps.Keys(h.Properties)) {
			value := h.Properties[name]
			s.longest[name] = max(s.longest[name], len(value.list))
			if err := checkProperty(name, value); err != nil {
				return err
			}
			known, seen := s.kinds[name]
			if seen && known != value.kind {
				return fault.Field("properties."+name, "a property has one type on all hosts, but it is a %s on %s and a %s on %s",
					known, first[name], value.kind, h.Name)
			}
			if !seen {
				s.kinds[name], first[name] = value.kind, h.Name
			}
		}
	}
	return nil
}

// checkProperty returns an Invalid fault if an admin cannot set the property to this value.
func checkProperty(name string, value Value) error {
	switch {
	case name == "":
		return fault.Field("properties", "a property has no name")
	case builtInNamed(name) != nil:
		return fault.Field("properties."+name, "is built in: Almanac fills it itself; choose another name")
	case value.kind == "":
		return fault.Field("properties."+name, "has no value")
	case math.IsNaN(value.number) || math.IsInf(value.number, 0):
		return fault.Field("properties."+name, "is not a finite number")
	}
	return nil
}

// rankEfficiency fills the ranks of the hosts by FLOPS per watt, the best first and unknown ones last.
func (s *Snapshot) rankEfficiency() {
	order := make([]int, len(s.hosts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(s.hosts[b].FlopsPerWatt, s.hosts[a].FlopsPerWatt), // unknown is 0, so last
			cmp.Compare(a, b), // hosts are sorted by name
		)
	})
	s.ranks = make([]int, len(order))
	for rank, i := range order {
		s.ranks[i] = rank
	}
}

// gatherClasses fills the custom resource classes that the hosts have, sorted.
func (s *Snapshot) gatherClasses() {
	seen := make(map[string]bool)
	for i := range s.hosts {
		for class, amount := range s.hosts[i].Capacity.Custom {
			if amount > 0 {
				seen[class] = true
			}
		}
	}
	s.classes = slices.Sorted(maps.Keys(seen))
}

// Classes returns the custom resource classes that hosts have, sorted. Callers must not change
// the result.
func (s *Snapshot) Classes() []string { return s.classes }

// Len returns the number of hosts.
func (s *Snapshot) Len() int { return len(s.hosts) }

// Host returns the host at index i, 0 ≤ i < Len.
func (s *Snapshot) Host(i int) *Host { return &s.hosts[i] }

// Index returns the index of the host with that name.
func (s *Snapshot) Index(name string) (int, bool) {
	i, ok := s.index[name]
	return i, ok
}

// Hosts iterates over the hosts, sorted by name, each with its index.
func (s *Snapshot) Hosts() iter.Seq2[int, *Host] {
	return func(yield func(int, *Host) bool) {
		for i := range s.hosts {
			if !yield(i, &s.hosts[i]) {
				return
			}
		}
	}
}

// EfficiencyRank returns the rank of host i, from 0, among all hosts, sorted by (1) FLOPS per watt,
// the most first and unknown last, (2) name. It is weigher 2 of paper 004, section 004.1.
func (s *Snapshot) EfficiencyRank(i int) int { return s.ranks[i] }
