// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"errors"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// ground is a cloud with layouts on it, as strict as Nova and Placement: a step may use only
// what exists, and may delete only what is not in use.
type ground struct {
	aggregates        map[string]inventory.Aggregate
	traits            map[string][]string
	rooms             map[string]map[string]int64
	flavors           map[string]inventory.Flavor
	names, classNames []string
}

func lay(l fence.Layout) *ground {
	g := &ground{map[string]inventory.Aggregate{}, map[string][]string{}, map[string]map[string]int64{}, maps.Clone(l.Flavors), slices.Clone(l.TraitNames), slices.Clone(l.ClassNames)}
	for name, a := range l.Aggregates {
		a.Metadata, a.Hosts = maps.Clone(a.Metadata), slices.Clone(a.Hosts)
		g.aggregates[name] = a
	}
	for host, traits := range l.Traits {
		g.traits[host] = slices.Clone(traits)
	}
	for host, rooms := range l.Rooms {
		g.rooms[host] = maps.Clone(rooms)
	}
	return g
}

func (g *ground) layout() fence.Layout {
	return fence.Layout{Aggregates: g.aggregates, Traits: g.traits, Rooms: g.rooms, Flavors: g.flavors, TraitNames: g.names, ClassNames: g.classNames}
}

func (g *ground) carry(s fence.Step) error {
	a, there := g.aggregates[s.Aggregate.Name]
	switch s.Action {
	case fence.CreateAggregate:
		if there {
			return errors.New("the aggregate exists")
		}
		a = inventory.Aggregate{Name: s.Aggregate.Name, Metadata: maps.Clone(s.Aggregate.Metadata)}
	case fence.MarkAggregate:
		maps.Copy(a.Metadata, s.Aggregate.Metadata)
	case fence.UnmarkAggregate:
		for key := range s.Aggregate.Metadata {
			delete(a.Metadata, key)
		}
	case fence.AddHost:
		if slices.Contains(a.Hosts, s.Host) {
			return errors.New("the host is in the aggregate")
		}
		a.Hosts = distinct(append(a.Hosts, s.Host))
	case fence.RemoveHost:
		if !slices.Contains(a.Hosts, s.Host) {
			return errors.New("the host is not in the aggregate")
		}
		a.Hosts = without(a.Hosts, s.Host)
	case fence.DeleteAggregate:
		if len(a.Hosts) > 0 {
			return errors.New("the aggregate has hosts")
		}
		delete(g.aggregates, s.Aggregate.Name)
		return nil
	default:
		return g.carryOther(s)
	}
	if s.Action != fence.CreateAggregate && !there {
		return errors.New("there is no such aggregate")
	}
	g.aggregates[a.Name] = a
	return nil
}

func (g *ground) carryOther(s fence.Step) error {
	f, there := g.flavors[s.Flavor.ID]
	switch s.Action {
	case fence.AddTraits:
		g.names = distinct(append(g.names, s.Traits...))
		g.traits[s.Host] = distinct(append(g.traits[s.Host], s.Traits...))
	case fence.RemoveTraits:
		if g.traits[s.Host] = without(g.traits[s.Host], s.Traits...); len(g.traits[s.Host]) == 0 {
			delete(g.traits, s.Host)
		}
	case fence.AddRooms, fence.RemoveRooms:
		g.setRooms(s.Host, s.Rooms)
	case fence.CreateFlavor:
		if there || s.Flavor.Resources.VCPUs < 1 {
			return errors.New("the flavor exists, or Nova allows none such")
		}
		f = s.Flavor
		f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
		g.flavors[f.ID] = f
	case fence.MarkFlavor:
		if !there {
			return errors.New("there is no such flavor")
		}
		f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
		maps.Copy(f.ExtraSpecs, s.Flavor.ExtraSpecs)
		g.flavors[f.ID] = f
	case fence.OpenFlavor:
		if !there {
			return errors.New("there is no such flavor")
		}
		f.ExtraSpecs = maps.Clone(f.ExtraSpecs)
		delete(f.ExtraSpecs, "trait:"+fence.Closed)
		g.flavors[f.ID] = f
	case fence.DeleteFlavor:
		delete(g.flavors, s.Flavor.ID)
	case fence.DeleteTrait:
		for _, traits := range g.traits {
			if slices.Contains(traits, s.Name) {
				return errors.New("a provider has the trait")
			}
		}
		g.names = without(g.names, s.Name)
	case fence.DeleteClass:
		for _, rooms := range g.rooms {
			if rooms[s.Name] > 0 {
				return errors.New("a provider has inventory of the class")
			}
		}
		g.classNames = without(g.classNames, s.Name)
	}
	return nil
}

func (g *ground) setRooms(host string, rooms map[string]int64) {
	if g.rooms[host] == nil {
		g.rooms[host] = map[string]int64{}
	}
	for class, n := range rooms {
		if g.rooms[host][class] = n; n == 0 {
			delete(g.rooms[host], class)
			continue
		}
		g.classNames = distinct(append(g.classNames, class))
	}
	if len(g.rooms[host]) == 0 {
		delete(g.rooms, host)
	}
}

func without(list []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(each string) bool { return slices.Contains(gone, each) })
}

// compare checks that the cloud has what was wanted, and still has what others had added.
func (g *ground) compare(t *rapid.T, before, want fence.Layout) {
	same := func(what string, got, wanted any, equal bool) {
		if !equal {
			t.Errorf("%s: %v, want %v", what, got, wanted)
		}
	}
	same("aggregates", g.aggregates, want.Aggregates, len(g.aggregates) == len(want.Aggregates))
	for name, w := range want.Aggregates {
		a, metadata := g.aggregates[name], maps.Clone(w.Metadata)
		if ssd, there := before.Aggregates[name].Metadata["ssd"]; there && metadata["ssd"] == "" {
			metadata["ssd"] = ssd
		}
		same("metadata of "+name, a.Metadata, metadata, maps.Equal(a.Metadata, metadata))
		same("hosts of "+name, a.Hosts, w.Hosts, slices.Equal(a.Hosts, w.Hosts))
	}
	same("traits", g.traits, want.Traits, maps.EqualFunc(g.traits, want.Traits, slices.Equal[[]string]))
	same("rooms", g.rooms, want.Rooms, maps.EqualFunc(g.rooms, want.Rooms, maps.Equal[map[string]int64, map[string]int64]))
	for id, w := range want.Flavors {
		f, there := g.flavors[id]
		for spec, value := range w.ExtraSpecs {
			same("extra spec "+spec, f.ExtraSpecs[spec], value, f.ExtraSpecs[spec] == value || !there && w.Resources.IsZero())
		}
	}
	for id := range g.flavors {
		_, there := want.Flavors[id]
		same("flavor", id, want.Flavors, there)
	}
	same("names of traits", g.names, want.TraitNames, len(without(g.names, want.TraitNames...)) == 0)
	same("names of classes", g.classNames, want.ClassNames, len(without(g.classNames, want.ClassNames...)) == 0)
}
