// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Otherwise a field could be missing on the wire without a failing test.
func TestTheHostsOfTheTestsLeaveNoFieldOut(t *testing.T) {
	drawn := make(map[string]bool)
	rapid.Check(t, func(rt *rapid.T) { noteFields(reflect.ValueOf(anyHost().Draw(rt, "host")), "Host", drawn) })
	for _, added := range []string{"WakeDelay", "Number", "Capabilities"} {
		drawn["Host."+added] = true // set by the process that keeps the hosts; no source has it
	}
	for _, of := range []any{inventory.Host{}, inventory.Instance{}, inventory.Flavor{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if name := reflect.TypeOf(of).Name() + "." + field.Name; !drawn[name] {
				t.Errorf("%s was never drawn", name)
			}
		}
	}
}

// noteFields records the fields of v that are not zero.
func noteFields(v reflect.Value, name string, into map[string]bool) {
	for i := range v.NumField() {
		field := v.Field(i)
		if field.IsZero() {
			continue
		}
		into[name+"."+v.Type().Field(i).Name] = true
		switch field.Interface().(type) {
		case inventory.Flavor:
			noteFields(field, "Flavor", into)
		case []inventory.Instance:
			for j := range field.Len() {
				noteFields(field.Index(j), "Instance", into)
			}
		}
	}
}

// anyHost draws hosts. Each property has one type on all hosts, as an inventory
// requires.
func anyHost() *rapid.Generator[inventory.Host] {
	return rapid.Custom(func(t *rapid.T) inventory.Host {
		h := inventory.Host{
			Name:          rapid.StringN(1, 20, -1).Draw(t, "name"),
			Capacity:      anyAmounts().Draw(t, "capacity"),
			Used:          anyAmounts().Draw(t, "used"),
			Zone:          rapid.String().Draw(t, "zone"),
			Aggregates:    anyNames().Draw(t, "aggregates"),
			Traits:        anyNames().Draw(t, "traits"),
			Reservable:    rapid.Bool().Draw(t, "reservable"),
			InstanceCount: rapid.Int().Draw(t, "guests"),
			Provider:      rapid.String().Draw(t, "provider"),
			Problem:       rapid.String().Draw(t, "trouble"),
			Instances:     rapid.OneOf(rapid.Just[[]inventory.Instance](nil), rapid.SliceOfN(anyInstance(), 0, 3)).Draw(t, "instances"),
			Power: rapid.SampledFrom([]inventory.Power{
				"", inventory.PowerOn, inventory.PowerSleeping, inventory.PowerWaking, inventory.PowerFailed,
			}).Draw(t, "power"),
			BootSeconds:  rapid.Int64().Draw(t, "boot seconds"),
			FlopsPerWatt: rapid.Float64().Draw(t, "FLOPS per watt"),
			Hypervisor: inventory.Hypervisor{
				Name: rapid.String().Draw(t, "hypervisor"), Type: rapid.String().Draw(t, "type"), Version: rapid.Int64().Draw(t, "version"),
			},
		}
		if rapid.Bool().Draw(t, "has properties") {
			h.Properties = map[string]inventory.Value{}
			for _, name := range rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "properties") {
				kind := rapid.SampledFrom([]inventory.Kind{inventory.KindNumber, inventory.KindString, inventory.KindBool, inventory.KindList}).Draw(t, "kind")
				h.Properties[string(kind)+" "+name] = anyValue(kind).Draw(t, "value")
			}
		}
		return h
	})
}

func anyInstance() *rapid.Generator[inventory.Instance] {
	return rapid.Custom(func(t *rapid.T) inventory.Instance {
		text := func(what string) string { return rapid.String().Draw(t, what) }
		truth := func(what string) bool { return rapid.Bool().Draw(t, what) }
		instant := func(what string) span.Instant { return span.Instant(rapid.Int64().Draw(t, what)) }
		return inventory.Instance{
			ID: text("id"), Name: text("name"), ProjectID: text("project"), UserID: text("user"), Host: text("host"),
			Status: text("status"), Task: text("task"), Created: instant("created"), Launched: instant("launched"),
			Flavor: inventory.Flavor{
				ID: text("flavor id"), Name: text("flavor"), Resources: anyAmounts().Draw(t, "resources"),
				ExtraSpecs: anyWords().Draw(t, "extra specs"), Public: truth("public"),
				EphemeralGB: rapid.Int64().Draw(t, "ephemeral"), SwapMB: rapid.Int64().Draw(t, "swap"),
			},
			Metadata: anyWords().Draw(t, "metadata"),
			Hints: rapid.OneOf(
				rapid.Just[map[string][]string](nil), rapid.MapOfN(rapid.String(), anyNames(), 0, 3),
			).Draw(t, "hints"),
			Locked: truth("locked"), Preemptible: truth("preemptible"), Protected: truth("protected"), Reservation: text("reservation"),
			Holds: rapid.OneOf(
				rapid.Just[map[string]int64](nil), rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 3),
			).Draw(t, "holds"),
		}
	})
}

// anyWords draws nil, empty and filled maps.
func anyWords() *rapid.Generator[map[string]string] {
	return rapid.OneOf(rapid.Just[map[string]string](nil), rapid.MapOfN(rapid.String(), rapid.String(), 0, 3))
}

func anyValue(kind inventory.Kind) *rapid.Generator[inventory.Value] {
	return map[inventory.Kind]*rapid.Generator[inventory.Value]{
		inventory.KindNumber: rapid.Map(rapid.Float64(), inventory.NumberValue),
		inventory.KindString: rapid.Map(rapid.String(), inventory.StringValue),
		inventory.KindBool:   rapid.Map(rapid.Bool(), inventory.BoolValue),
		inventory.KindList:   rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), inventory.ListValue),
	}[kind]
}

func anyAmounts() *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		v := resource.Vector{
			VCPUs: rapid.Int64().Draw(t, "vcpus"), MemoryMB: rapid.Int64().Draw(t, "memory_mb"), DiskGB: rapid.Int64().Draw(t, "disk_gb"),
		}
		if rapid.Bool().Draw(t, "has custom classes") {
			v.Custom = rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 3).Draw(t, "custom")
		}
		return v
	})
}

// anyNames draws nil, empty and filled slices.
func anyNames() *rapid.Generator[[]string] {
	return rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfN(rapid.String(), 0, 3))
}
