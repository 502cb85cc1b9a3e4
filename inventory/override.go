// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"maps"
)

// Override is what an operator has set for one host. It takes precedence over the host's Source.
type Override struct {
	// Properties replaces properties, by name; a nil value removes one.
	Properties map[string]*Value
	// Reservable adds the host to the pool or removes it; nil means no override.
	Reservable *bool
	// Power is the host's power state; nil means no override. In a change, the empty Power removes
	// the override.
	Power *Power
	// Capabilities are the properties given through Blazar's API. No property is among both these and
	// Properties. nil means that Blazar's API set nothing.
	Capabilities *Capabilities
}

// IsZero reports whether o sets nothing.
func (o Override) IsZero() bool {
	return len(o.Properties) == 0 && o.Reservable == nil && o.Power == nil && o.Capabilities == nil
}

// apply changes h to what the admin has set.
func (o Override) apply(h *Host) {
	if o.Reservable != nil {
		h.Reservable = *o.Reservable
	}
	o.applyPower(h)
	if len(o.Properties) == 0 {
		return
	}
	properties := make(map[string]Value, len(h.Properties)+len(o.Properties))
	maps.Copy(properties, h.Properties)
	for name, value := range o.Properties {
		if value == nil {
			delete(properties, name)
		} else {
			properties[name] = *value
		}
	}
	h.Properties = properties
}

// applyPower sets the power state. It removes the problem of a host that is off on purpose, whose
// services are reported as down.
func (o Override) applyPower(h *Host) {
	if o.Power != nil {
		h.Power = *o.Power
	}
	if h.Power == PowerSleeping || h.Power == PowerWaking {
		h.Problem = ""
	}
}

// kindsSet returns the type of each property that an operator has set; if the types differ, that on
// the first of hosts.
func kindsSet(hosts []Host, overrides map[string]Override) map[string]Kind {
	kinds := make(map[string]Kind)
	for i := range hosts {
		for name, value := range overrides[hosts[i].Name].Properties {
			if _, known := kinds[name]; !known && value != nil {
				kinds[name] = value.kind
			}
		}
	}
	return kinds
}

// with returns o with the settings of change, which take precedence: what change sets as a property
// is no longer a capability. change has no capabilities.
func (o Override) with(change Override) Override {
	properties := make(map[string]*Value, len(o.Properties)+len(change.Properties))
	maps.Copy(properties, o.Properties)
	maps.Copy(properties, change.Properties)
	power := cmp.Or(change.Power, o.Power)
	if power != nil && *power == "" {
		power = nil
	}
	return Override{
		Properties: properties, Reservable: cmp.Or(change.Reservable, o.Reservable), Power: power,
		Capabilities: o.Capabilities.without(change.Properties),
	}
}

// differing returns the change without what the host h has already: what a client has read and sends
// back does not become a setting.
func (o Override) differing(h *Host) Override {
	o.Properties = maps.Clone(o.Properties)
	maps.DeleteFunc(o.Properties, func(name string, value *Value) bool { return value != nil && value.Equal(h.Properties[name]) })
	if o.Reservable != nil && *o.Reservable == h.Reservable {
		o.Reservable = nil
	}
	if o.Power != nil && *o.Power == cmp.Or(h.Power, PowerOn) {
		o.Power = nil
	}
	return o
}

// equal reports whether both set the same.
func (o Override) equal(other Override) bool {
	return equalOrNil(o.Reservable, other.Reservable, func(a, b bool) bool { return a == b }) &&
		equalOrNil(o.Power, other.Power, func(a, b Power) bool { return a == b }) &&
		equalOrNil(o.Capabilities, other.Capabilities, Capabilities.equal) &&
		maps.EqualFunc(o.Properties, other.Properties, func(a, b *Value) bool { return equalOrNil(a, b, Value.Equal) })
}

// equalOrNil reports whether both are nil, or equal to each other.
func equalOrNil[T any](a, b *T, equal func(a, b T) bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(*a, *b)
}
