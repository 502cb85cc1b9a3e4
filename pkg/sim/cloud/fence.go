// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const closed = "trait:" + fence.Closed

// Layout implements upkeep.FenceBackend.
func (f Fence) Layout(context.Context) (fence.Layout, error) {
	c := f.Cloud
	defer c.enter()()
	layout := fence.Layout{
		Aggregates: map[string]inventory.Aggregate{}, Traits: map[string][]string{}, Rooms: map[string]map[string]int64{},
		Flavors: map[string]inventory.Flavor{}, TraitNames: slices.Sorted(maps.Keys(c.traits)), ClassNames: slices.Sorted(maps.Keys(c.classes)),
	}
	for name, a := range c.aggregates {
		one := *a
		one.Metadata, one.Hosts = maps.Clone(a.Metadata), slices.Clone(a.Hosts)
		layout.Aggregates[name] = one
	}
	for name, m := range c.machines {
		if len(m.traits) > 0 {
			layout.Traits[name] = slices.Sorted(maps.Keys(m.traits))
		}
		if len(m.rooms) > 0 {
			layout.Rooms[name] = maps.Clone(m.rooms)
		}
	}
	for id, flavor := range c.flavors {
		if _, marked := flavor.ExtraSpecs[inventory.ReservationMark]; marked {
			flavor.ExtraSpecs = maps.Clone(flavor.ExtraSpecs)
			layout.Flavors[id] = flavor
		}
	}
	return layout, nil
}

// Carry implements upkeep.FenceBackend.
func (f Fence) Carry(_ context.Context, step fence.Step) error {
	defer f.Cloud.enter()()
	return fault.While(f.Cloud.carry(step), "%s", step.Summary())
}

// carry carries out a step of the fence.
func (c *Cloud) carry(step fence.Step) error {
	switch step.Action {
	case fence.CreateAggregate, fence.MarkAggregate, fence.UnmarkAggregate, fence.AddHost, fence.RemoveHost, fence.DeleteAggregate:
		return c.changeAggregate(step)
	case fence.AddTraits, fence.RemoveTraits, fence.AddRooms, fence.RemoveRooms:
		return c.changeProvider(step)
	case fence.CreateFlavor:
		flavor := step.Flavor
		flavor.ExtraSpecs = maps.Clone(flavor.ExtraSpecs)
		c.flavors[flavor.ID], c.access[flavor.ID] = flavor, flavor.ExtraSpecs[fence.ProjectMark]
		return nil
	case fence.MarkFlavor, fence.UnmarkFlavor, fence.OpenFlavor:
		c.changeFlavor(step)
		return nil
	case fence.DeleteFlavor:
		delete(c.flavors, step.Flavor.ID)
		delete(c.access, step.Flavor.ID)
		return nil
	case fence.DeleteTrait:
		delete(c.traits, step.Name)
		return nil
	case fence.DeleteClass:
		delete(c.classes, step.Name)
		return nil
	}
	return fmt.Errorf("there is no action %q", step.Action)
}

// changeAggregate carries out a step about an aggregate.
func (c *Cloud) changeAggregate(step fence.Step) error {
	a := c.aggregates[step.Aggregate.Name]
	if step.Action == fence.CreateAggregate && a == nil {
		c.made++
		a = &inventory.Aggregate{ID: c.made, UUID: idOf(fmt.Sprint("aggregate ", c.made)), Name: step.Aggregate.Name, Metadata: map[string]string{}}
		c.aggregates[a.Name] = a
	}
	if a == nil {
		if step.Adds() {
			return fault.New(fault.NotFound, "there is no aggregate %s", step.Aggregate.Name)
		}
		return nil
	}
	switch step.Action {
	case fence.CreateAggregate, fence.MarkAggregate:
		maps.Copy(a.Metadata, step.Aggregate.Metadata)
	case fence.UnmarkAggregate:
		for key := range step.Aggregate.Metadata {
			delete(a.Metadata, key)
		}
	case fence.AddHost:
		if _, err := c.machineNamed(step.Host); err != nil {
			return err
		}
		if at, there := slices.BinarySearch(a.Hosts, step.Host); !there {
			a.Hosts = slices.Insert(slices.Clone(a.Hosts), at, step.Host)
		}
	case fence.RemoveHost:
		a.Hosts = slices.DeleteFunc(slices.Clone(a.Hosts), func(host string) bool { return host == step.Host })
	case fence.DeleteAggregate:
		delete(c.aggregates, a.Name)
	}
	return nil
}

// changeProvider carries out a step about the traits or the rooms of a host.
func (c *Cloud) changeProvider(step fence.Step) error {
	m, err := c.machineNamed(step.Host)
	if err != nil {
		if step.Adds() {
			return err
		}
		return nil
	}
	switch step.Action {
	case fence.AddTraits:
		for _, trait := range step.Traits {
			m.traits[trait], c.traits[trait] = true, true
		}
	case fence.RemoveTraits:
		for _, trait := range step.Traits {
			delete(m.traits, trait)
		}
	default:
		return c.setRooms(m, step.Rooms)
	}
	return nil
}

// setRooms sets how many instances of reservations a host takes, by resource class. It fails with a
// Conflict fault if more are there already.
func (c *Cloud) setRooms(m *machine, rooms map[string]int64) error {
	for class, n := range rooms {
		if used := c.placement.Used(m.child(), class); used > n {
			return fault.New(fault.Conflict, "%d of %s are in use on host %s", used, class, m.host.Name)
		}
	}
	for class, n := range rooms {
		if m.rooms[class], c.classes[class] = n, true; n == 0 {
			delete(m.rooms, class)
		}
	}
	return nil
}

// changeFlavor carries out a step about the extra specs of a flavor.
func (c *Cloud) changeFlavor(step fence.Step) {
	flavor, known := c.flavors[step.Flavor.ID]
	if !known {
		return
	}
	flavor.ExtraSpecs = maps.Clone(flavor.ExtraSpecs)
	switch step.Action {
	case fence.MarkFlavor:
		maps.Copy(flavor.ExtraSpecs, step.Flavor.ExtraSpecs)
		c.access[flavor.ID] = flavor.ExtraSpecs[fence.ProjectMark]
	case fence.UnmarkFlavor:
		for key := range step.Flavor.ExtraSpecs {
			delete(flavor.ExtraSpecs, key)
		}
	case fence.OpenFlavor:
		delete(flavor.ExtraSpecs, closed)
	}
	c.flavors[flavor.ID] = flavor
}

// Admit implements upkeep.FenceBackend.
func (f Fence) Admit(_ context.Context, r reservation.Reservation) error {
	defer f.Cloud.enter()()
	for id := range f.Cloud.flavors {
		if f.Cloud.isOf(id, r) {
			f.Cloud.changeFlavor(fence.Step{Action: fence.OpenFlavor, Flavor: inventory.Flavor{ID: id}})
		}
	}
	return nil
}

// Expel implements upkeep.FenceBackend.
func (f Fence) Expel(_ context.Context, r reservation.Reservation) error {
	defer f.Cloud.enter()()
	for id := range f.Cloud.flavors {
		if f.Cloud.isOf(id, r) {
			delete(f.Cloud.access, id)
		}
	}
	return nil
}

// isOf reports whether a flavor belongs to a reservation.
func (c *Cloud) isOf(flavor string, r reservation.Reservation) bool {
	return flavor == r.ID || r.Kind == reservation.Hosts && strings.HasPrefix(flavor, r.ID+"-")
}
