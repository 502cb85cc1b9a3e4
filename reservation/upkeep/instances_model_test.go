// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// addFlavor adds a flavor that has nothing to do with reservations.
func (m *modelCloud) addFlavor(id string, extraSpecs map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flavors[id] = inventory.Flavor{ID: id, Name: id, Public: true, ExtraSpecs: extraSpecs, Resources: resource.Vector{VCPUs: 1, MemoryMB: 512}}
}

// boot places an instance of that flavor as nova-scheduler does, and returns its host.
func (m *modelCloud) boot(id, project, flavor string, at span.Instant) (host string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.flavors[flavor]
	if !ok || !f.Public && !m.access[flavor][project] {
		return "", fault.New(fault.NotFound, "there is no flavor %s for project %s", flavor, project)
	}
	i := slices.IndexFunc(m.hosts, func(h string) bool { return m.takes(h, f) })
	if i < 0 {
		return "", errors.New("No valid host was found")
	}
	m.settle(inventory.Instance{ID: id, Name: id, ProjectID: project, Host: m.hosts[i], Status: "ACTIVE", Created: at, Launched: at, Flavor: f})
	return m.hosts[i], nil
}

// put makes an instance run on a host, without the scheduler.
func (m *modelCloud) put(i inventory.Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle(i)
}

func (m *modelCloud) settle(i inventory.Instance) { m.guests[i.ID] = &guest{Instance: i} }

// takes reports whether the scheduler admits an instance of the flavor to the host: the host
// has the required traits and classes, and no aggregate of the host is isolated from the flavor.
func (m *modelCloud) takes(host string, f inventory.Flavor) bool {
	for spec, value := range f.ExtraSpecs {
		kind, name, _ := strings.Cut(spec, ":")
		if kind == "trait" && value == "required" && !m.traits[host][name] {
			return false
		}
		if kind == "resources" && strings.HasPrefix(name, fence.OwnPrefix) && m.rooms[host][name] <= m.taken(host, name) {
			return false
		}
	}
	for _, a := range m.aggregates {
		if m.blind || !slices.Contains(a.Hosts, host) {
			continue
		}
		for key, value := range a.Metadata {
			if strings.HasPrefix(key, "trait:") && value == "required" && f.ExtraSpecs[key] != "required" {
				return false
			}
		}
	}
	return true
}

// On returns the instances on the host.
func (m *modelCloud) On(_ context.Context, host string) ([]inventory.Instance, error) {
	return m.look("on", func(i *inventory.Instance) bool { return i.Host == host })
}

// Of returns the instances of the reservation.
func (m *modelCloud) Of(_ context.Context, r reservation.Reservation) ([]inventory.Instance, error) {
	return m.look("of", func(i *inventory.Instance) bool { return i.ReservationID() == r.ID })
}

func (m *modelCloud) look(what string, wanted func(*inventory.Instance) bool) (list []inventory.Instance, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail[what]; err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(m.guests)) {
		g := m.guests[id]
		if !wanted(&g.Instance) {
			continue
		}
		if m.stuck[id] || g.order == "" {
			list = append(list, g.Instance)
			continue
		}
		if g.left--; g.left < 0 {
			m.happen(g)
		}
		if _, there := m.guests[id]; there && wanted(&g.Instance) {
			list = append(list, g.Instance)
		}
	}
	return list, nil
}

// happen carries out an order. A migrating instance moves to the first other host that admits
// it, or stays.
func (m *modelCloud) happen(g *guest) {
	switch g.order {
	case upkeep.OrderDelete:
		delete(m.guests, g.ID)
	case upkeep.OrderStop:
		g.Status = "SHUTOFF"
	case upkeep.OrderShelve:
		g.Status, g.Host = "SHELVED_OFFLOADED", ""
	case upkeep.OrderMigrate:
		if i := slices.IndexFunc(m.hosts, func(h string) bool { return h != g.Host && m.takes(h, g.Flavor) }); i >= 0 {
			g.Host = m.hosts[i]
		}
	}
	g.order, g.Task = "", ""
}

// Order begins an order. As in Nova, an instance with a task refuses it, except a deletion.
func (m *modelCloud) Order(_ context.Context, i inventory.Instance, order upkeep.Order) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail[string(order)]; err != nil {
		return err
	}
	g, there := m.guests[i.ID]
	switch {
	case !there:
		return nil
	case g.order == order:
		return nil
	case g.order != "" && order != upkeep.OrderDelete:
		return fault.New(fault.Conflict, "the instance is busy: %s", g.Task)
	case order == upkeep.OrderStop && g.Status != "ACTIVE",
		order == upkeep.OrderShelve && (g.Status == "RESCUE" || g.Status == "VERIFY_RESIZE"):
		return fault.New(fault.Conflict, "the instance is %s", g.Status)
	}
	g.order, g.left, g.Task = order, m.looks, string(order)+"-ing"
	m.orders = append(m.orders, string(order)+" "+i.ID)
	return nil
}
