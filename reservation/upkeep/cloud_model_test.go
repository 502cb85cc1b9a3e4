// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// modelCloud is Nova and Placement in memory. It refuses what they refuse, places instances as
// nova-scheduler does with enable_isolated_aggregate_filtering, and takes time to carry out
// orders. It does not model the capacity of hosts.
type modelCloud struct {
	mu         sync.Mutex
	hosts      []string
	aggregates map[string]*inventory.Aggregate
	nextID     int
	traits     map[string]map[string]bool  // by host
	rooms      map[string]map[string]int64 // by host
	names      map[string]bool             // of traits
	classes    map[string]bool
	flavors    map[string]inventory.Flavor
	access     map[string]map[string]bool // projects by flavor
	guests     map[string]*guest

	// looks is how many times On or Of returns an instance after an order before the order
	// takes effect.
	looks int
	// stuck lists instances that carry out no order.
	stuck map[string]bool
	// fail holds the error of each kind of call: the action of a step, "layout", "admit",
	// "expel", "on", "of", or an order.
	fail map[string]error
	// carried and orders list the steps and the orders, in order.
	carried []fence.Step
	orders  []string
	// blind makes Nova's scheduler ignore the fence, as it does without
	// enable_isolated_aggregate_filtering.
	blind bool
}

type guest struct {
	inventory.Instance
	order upkeep.Order // being carried out; empty if none
	left  int          // how many looks remain until it takes effect
}

var (
	_ upkeep.FenceBackend = (*modelCloud)(nil)
	_ upkeep.Instances    = (*modelCloud)(nil)
)

func newModelCloud(hosts ...string) *modelCloud {
	return &modelCloud{
		hosts: hosts, aggregates: map[string]*inventory.Aggregate{}, traits: map[string]map[string]bool{},
		rooms: map[string]map[string]int64{}, names: map[string]bool{}, classes: map[string]bool{},
		flavors: map[string]inventory.Flavor{}, access: map[string]map[string]bool{}, guests: map[string]*guest{},
		looks: 2, stuck: map[string]bool{}, fail: map[string]error{},
	}
}

// inventory returns the hosts with their guests, in the form of a source's reading.
func (m *modelCloud) inventory() *inventory.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var hosts []inventory.Host
	for _, name := range m.hosts {
		h := inventory.Host{Name: name, Reservable: true, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 16384, DiskGB: 100}}
		for _, id := range slices.Sorted(maps.Keys(m.guests)) {
			if m.guests[id].Host == name {
				h.Instances = append(h.Instances, m.guests[id].Instance)
			}
		}
		h.InstanceCount = len(h.Instances)
		hosts = append(hosts, h)
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		panic(err)
	}
	return snapshot
}

// Layout returns Almanac's part of the cloud.
func (m *modelCloud) Layout(context.Context) (fence.Layout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := fence.Layout{
		Aggregates: map[string]inventory.Aggregate{}, Traits: map[string][]string{},
		Rooms: map[string]map[string]int64{}, Flavors: map[string]inventory.Flavor{},
	}
	if err := m.fail["layout"]; err != nil {
		return l, err
	}
	for name, a := range m.aggregates {
		if name == fence.Aggregate || strings.HasPrefix(name, fence.AggregatePrefix) || fence.IsMirror(*a) {
			copied := *a
			copied.Metadata, copied.Hosts = maps.Clone(a.Metadata), slices.Sorted(slices.Values(a.Hosts))
			l.Aggregates[name] = copied
		}
	}
	for host, traits := range m.traits {
		if len(traits) > 0 {
			l.Traits[host] = slices.Sorted(maps.Keys(traits))
		}
	}
	for host, rooms := range m.rooms {
		if len(rooms) > 0 {
			l.Rooms[host] = maps.Clone(rooms)
		}
	}
	for id, f := range m.flavors {
		if strings.HasPrefix(f.Name, fence.FlavorPrefix) {
			f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
			l.Flavors[id] = f
		}
	}
	l.TraitNames, l.ClassNames = slices.Sorted(maps.Keys(m.names)), slices.Sorted(maps.Keys(m.classes))
	return l, nil
}

// Carry does one step. The error is a conflict for what Nova or Placement refuse, and not
// found for what they do not find.
func (m *modelCloud) Carry(_ context.Context, s fence.Step) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := cmp.Or(m.fail[string(s.Action)], m.do(s)); err != nil {
		return fmt.Errorf("%s %s%s%s%s: %w", s.Action, s.Aggregate.Name, s.Flavor.Name, s.Host, s.Name, err)
	}
	m.carried = append(m.carried, s)
	return nil
}

func (m *modelCloud) do(s fence.Step) error {
	switch s.Action {
	case fence.CreateAggregate, fence.MarkAggregate, fence.UnmarkAggregate, fence.AddHost, fence.RemoveHost, fence.DeleteAggregate:
		return m.doAggregate(s)
	case fence.CreateFlavor, fence.MarkFlavor, fence.OpenFlavor, fence.DeleteFlavor:
		return m.doFlavor(s)
	}
	return m.doPlacement(s)
}

func (m *modelCloud) doAggregate(s fence.Step) error {
	a, there := m.aggregates[s.Aggregate.Name]
	switch {
	case s.Action == fence.CreateAggregate && !there:
		m.nextID++
		a = &inventory.Aggregate{ID: m.nextID, Name: s.Aggregate.Name, Metadata: map[string]string{}}
		m.aggregates[a.Name] = a
	case !there && s.Action == fence.DeleteAggregate:
		return nil
	case !there:
		return fault.New(fault.NotFound, "there is no such aggregate")
	}
	switch s.Action {
	case fence.CreateAggregate, fence.MarkAggregate:
		maps.Copy(a.Metadata, s.Aggregate.Metadata)
	case fence.UnmarkAggregate:
		for key := range s.Aggregate.Metadata {
			delete(a.Metadata, key)
		}
	case fence.AddHost:
		if !slices.Contains(m.hosts, s.Host) {
			return fault.New(fault.NotFound, "there is no such compute host")
		}
		if !slices.Contains(a.Hosts, s.Host) {
			a.Hosts = append(a.Hosts, s.Host)
		}
	case fence.RemoveHost:
		a.Hosts = slices.DeleteFunc(a.Hosts, func(h string) bool { return h == s.Host })
	case fence.DeleteAggregate:
		if len(a.Hosts) > 0 {
			return fault.New(fault.Conflict, "the aggregate is not empty")
		}
		delete(m.aggregates, a.Name)
	}
	return nil
}

func (m *modelCloud) doFlavor(s fence.Step) error {
	f, there := m.flavors[s.Flavor.ID]
	switch s.Action {
	case fence.CreateFlavor:
		for _, other := range m.flavors {
			if other.Name == s.Flavor.Name && other.ID != s.Flavor.ID {
				return fault.New(fault.Conflict, "another flavor has that name")
			}
		}
		if s.Flavor.Resources.VCPUs < 1 || s.Flavor.Resources.MemoryMB < 1 || s.Flavor.Resources.DiskGB < 0 {
			return fault.New(fault.Invalid, "a flavor has at least one vCPU and 1 MB")
		}
		if !there {
			f = s.Flavor
			f.ExtraSpecs = map[string]string{}
		}
	case fence.MarkFlavor, fence.OpenFlavor:
		if !there {
			return fault.New(fault.NotFound, "there is no such flavor")
		}
	case fence.DeleteFlavor:
		delete(m.flavors, s.Flavor.ID)
		delete(m.access, s.Flavor.ID)
		return nil
	}
	f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
	if s.Action == fence.OpenFlavor {
		delete(f.ExtraSpecs, closed)
	} else {
		maps.Copy(f.ExtraSpecs, s.Flavor.ExtraSpecs)
	}
	if project, marked := s.Flavor.ExtraSpecs[fence.ProjectMark]; marked {
		set(m.access, f.ID, project, true)
	}
	m.flavors[f.ID] = f
	return nil
}

// closed is an extra spec that no host satisfies.
const closed = "trait:" + fence.Closed

func (m *modelCloud) doPlacement(s fence.Step) error {
	if s.Host != "" && !slices.Contains(m.hosts, s.Host) {
		if s.Action == fence.RemoveTraits || s.Action == fence.RemoveRooms {
			return nil
		}
		return fault.New(fault.NotFound, "the host has no resource provider")
	}
	switch s.Action {
	case fence.AddTraits:
		for _, trait := range s.Traits {
			m.names[trait] = true
			set(m.traits, s.Host, trait, true)
		}
	case fence.RemoveTraits:
		for _, trait := range s.Traits {
			delete(m.traits[s.Host], trait)
		}
	case fence.AddRooms, fence.RemoveRooms:
		for class, n := range s.Rooms {
			if n == 0 && m.taken(s.Host, class) > 0 {
				return fault.New(fault.Conflict, "instances use the inventory")
			}
			if n == 0 {
				delete(m.rooms[s.Host], class)
				continue
			}
			m.classes[class] = true
			set(m.rooms, s.Host, class, n)
		}
	case fence.DeleteTrait:
		for _, traits := range m.traits {
			if traits[s.Name] {
				return fault.New(fault.Conflict, "the trait is in use")
			}
		}
		delete(m.names, s.Name)
	case fence.DeleteClass:
		for _, rooms := range m.rooms {
			if _, used := rooms[s.Name]; used {
				return fault.New(fault.Conflict, "the resource class is in use")
			}
		}
		delete(m.classes, s.Name)
	}
	return nil
}

func set[T any](all map[string]map[string]T, host, name string, value T) {
	if all[host] == nil {
		all[host] = map[string]T{}
	}
	all[host][name] = value
}

// taken returns how many instances on the host use a resource class.
func (m *modelCloud) taken(host, class string) (n int64) {
	for _, g := range m.guests {
		if _, needs := g.Flavor.ExtraSpecs["resources:"+class]; needs && g.Host == host {
			n++
		}
	}
	return n
}

// Admit opens the reservation's flavors.
func (m *modelCloud) Admit(_ context.Context, r reservation.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail["admit"]; err != nil {
		return err
	}
	for id, f := range m.flavors {
		if f.ExtraSpecs[inventory.ReservationMark] == r.ID {
			f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
			delete(f.ExtraSpecs, closed)
			m.flavors[id] = f
		}
	}
	return nil
}

// Expel takes the flavors from the reservation's project.
func (m *modelCloud) Expel(_ context.Context, r reservation.Reservation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail["expel"]; err != nil {
		return err
	}
	for id, f := range m.flavors {
		if f.ExtraSpecs[inventory.ReservationMark] == r.ID {
			delete(m.access[id], r.ProjectID)
		}
	}
	return nil
}
