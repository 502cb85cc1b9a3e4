// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
)

// Property is an entry of the catalog: a property that filters can use.
type Property struct {
	Name string
	Type Kind
	// Values are the values that hosts have, each once, in order. For a List they are the
	// elements, as values of kind String.
	Values []Value
	// BuiltIn properties exist on every cloud and cannot be set.
	BuiltIn bool
	// Hidden properties are for admins only.
	Hidden bool
}

// Properties returns the catalog, sorted by name: the built-in properties and those of the
// hosts. The first call computes it; callers must not change it.
func (s *Snapshot) Properties() []Property { return s.catalogue() }

// properties returns all properties of the hosts by name, built-in ones included, each with its type and
// its values.
func (s *Snapshot) properties() []Property {
	seen := make(map[string][]Value, len(builtIns)+len(s.kinds))
	for i := range s.hosts {
		h := &s.hosts[i]
		for _, b := range builtIns {
			if value := b.of(h, false); value.kind != "" {
				seen[b.name] = value.appendElements(seen[b.name])
			}
		}
		for name, value := range h.Properties {
			seen[name] = value.appendElements(seen[name])
		}
	}
	catalogue := make([]Property, 0, len(seen))
	for _, b := range builtIns {
		catalogue = append(catalogue, Property{Name: b.name, Type: b.kind, BuiltIn: true})
	}
	for name, kind := range s.kinds {
		catalogue = append(catalogue, Property{Name: name, Type: kind})
	}
	for i := range catalogue {
		p := &catalogue[i]
		p.Hidden = s.hidden[p.Name]
		p.Values = slices.CompactFunc(slices.SortedFunc(slices.Values(seen[p.Name]), Value.Compare), Value.Equal)
	}
	slices.SortFunc(catalogue, func(a, b Property) int { return cmp.Compare(a.Name, b.Name) })
	return catalogue
}

// appendElements appends the elements of a list, or the value itself, to to.
func (v Value) appendElements(to []Value) []Value {
	if v.kind != KindList {
		return append(to, v)
	}
	for _, element := range v.list {
		to = append(to, StringValue(element))
	}
	return to
}

// builtIn is a property that Almanac computes from the host.
type builtIn struct {
	name string
	kind Kind
	of   func(h *Host, ahead bool) Value
	// timely is true if the property differs with ahead.
	timely bool
}

var builtIns = []builtIn{
	{name: "name", kind: KindString, of: func(h *Host, _ bool) Value { return StringValue(h.Name) }},
	{name: "id", kind: KindNumber, of: hostNumber},
	{name: "vcpus", kind: KindNumber, of: func(h *Host, _ bool) Value { return NumberValue(float64(h.Capacity.VCPUs)) }},
	{name: "memory_mb", kind: KindNumber, of: func(h *Host, _ bool) Value { return NumberValue(float64(h.Capacity.MemoryMB)) }},
	{name: "disk_gb", kind: KindNumber, of: func(h *Host, _ bool) Value { return NumberValue(float64(h.Capacity.DiskGB)) }},
	{name: "zone", kind: KindString, of: zone},
	{name: "aggregates", kind: KindList, of: func(h *Host, _ bool) Value { return sortedList(h.Aggregates) }},
	{name: "traits", kind: KindList, of: func(h *Host, _ bool) Value { return sortedList(h.Traits) }},
	{name: "flops_per_watt", kind: KindNumber, of: flopsPerWatt},
	{name: "hypervisor_hostname", kind: KindString, of: func(h *Host, _ bool) Value { return StringValue(h.HypervisorName()) }},
	{name: "hypervisor_type", kind: KindString, of: hypervisorType},
	{name: "hypervisor_version", kind: KindNumber, of: hypervisorVersion},
	{name: "free_ram_mb", kind: KindNumber, of: freeRAM, timely: true},
	{name: "free_disk_mb", kind: KindNumber, of: freeDisk, timely: true},
}

// IsBuiltIn reports whether Almanac computes the property of that name. No source may define
// one of that name.
func IsBuiltIn(name string) bool { return builtInNamed(name) != nil }

// builtInNamed returns the built-in property with that name; nil if there is none.
func builtInNamed(name string) *builtIn {
	if i := slices.IndexFunc(builtIns, func(b builtIn) bool { return b.name == name }); i >= 0 {
		return &builtIns[i]
	}
	return nil
}

func hostNumber(h *Host, _ bool) Value {
	if h.Number == 0 {
		return Value{}
	}
	return NumberValue(float64(h.Number))
}

func zone(h *Host, _ bool) Value {
	if h.Zone == "" {
		return Value{}
	}
	return StringValue(h.Zone)
}

func flopsPerWatt(h *Host, _ bool) Value {
	if h.FlopsPerWatt == 0 {
		return Value{}
	}
	return NumberValue(h.FlopsPerWatt)
}

func hypervisorType(h *Host, _ bool) Value {
	if h.Hypervisor.Type == "" {
		return Value{}
	}
	return StringValue(h.Hypervisor.Type)
}

func hypervisorVersion(h *Host, _ bool) Value {
	if h.Hypervisor.Version == 0 {
		return Value{}
	}
	return NumberValue(float64(h.Hypervisor.Version))
}

func freeRAM(h *Host, ahead bool) Value {
	free := h.Capacity.MemoryMB
	if !ahead {
		free -= h.Used.MemoryMB
	}
	return NumberValue(float64(free))
}

func freeDisk(h *Host, ahead bool) Value {
	free := h.Capacity.DiskGB
	if !ahead {
		free -= h.Used.DiskGB
	}
	return NumberValue(float64(free * 1024))
}

// lookup returns the type of a property and how to read it from a host. The type is "" for a
// property that no host has, and for a hidden one if seesHidden is false.
func (s *Snapshot) lookup(name string, seesHidden bool) (Kind, operand) {
	if s.hidden[name] && !seesHidden {
		return "", nil
	}
	if b := builtInNamed(name); b != nil {
		return b.kind, b.of
	}
	kind, known := s.kinds[name]
	if !known {
		return "", nil
	}
	return kind, func(h *Host, _ bool) Value { return h.Properties[name] }
}
