// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/reservation"
)

// On returns the instances that are on the host or hold a place there, sorted by ID: those
// that Nova lists on it, and every consumer of the host in Placement. Such a consumer may be
// an instance on its way to the host, or the migration of an instance that has left and
// would come back unless the migration is confirmed: then On returns that instance, with the
// host whose place it holds. A consumer that Nova does not know has an ID and a Host, and
// nothing else.
//
// Suspended servers of best-effort work are left out: they use only some disk of the host,
// and do not resume before the host is theirs again.
//
// For a host that is empty in Placement and in the snapshot, On makes one request.
func (c *Backend) On(ctx context.Context, host string) ([]inventory.Instance, error) {
	instances, err := c.on(ctx, host)
	return instances, fault.While(err, "read the instances on host %s", host)
}

func (c *Backend) on(ctx context.Context, host string) ([]inventory.Instance, error) {
	provider, err := c.provider(ctx, host)
	if err != nil {
		return nil, err
	}
	consumers, err := c.placement.Allocations(ctx, provider)
	if err != nil {
		return nil, err
	}
	if h, there := c.host(host); there && h.InstanceCount == 0 && len(h.Instances) == 0 && len(consumers) == 0 {
		return nil, nil
	}
	servers, err := c.compute.Servers(ctx, nova.ServerQuery{Host: host})
	if err != nil {
		return nil, err
	}
	found := map[string]inventory.Instance{}
	resting, err := c.suspended(ctx, servers, consumers)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if resting[s.ID] {
			continue
		}
		found[s.ID] = s.Instance
		delete(consumers, s.ID)
	}
	if err := c.addHolders(ctx, host, consumers, found); err != nil {
		return nil, err
	}
	instances := slices.SortedFunc(maps.Values(found), byID)
	return instances, c.recognize(ctx, instances)
}

// suspended returns the servers that best-effort work has suspended and locked, without a task in
// Nova and without allocations in Placement, as a set of ids.
func (c *Backend) suspended(ctx context.Context, servers []nova.Server, consumers map[string]map[string]int64) (map[string]bool, error) {
	var ids []string
	for _, s := range servers {
		if _, holds := consumers[s.ID]; !holds && s.Status == "SUSPENDED" && s.Task == "" && s.Locked {
			ids = append(ids, s.ID)
		}
	}
	if c.resting == nil || len(ids) == 0 {
		return nil, nil
	}
	return c.resting.Resting(ctx, ids...)
}

// recognize adds to the instances what Nova does not have: whether they are preemptible, and their
// reservation.
func (c *Backend) recognize(ctx context.Context, instances []inventory.Instance) error {
	ids := make([]string, len(instances))
	for n := range instances {
		i := &instances[n]
		ids[n], i.Preemptible, i.Protected = i.ID, c.preemptible.Marks(i), c.preemptible.Protects(i)
	}
	if c.records == nil || len(ids) == 0 {
		return nil
	}
	known, err := c.records.InstanceRecords(ctx, ids...)
	if err != nil {
		return err
	}
	for n := range instances {
		instances[n].AddRecord(known[instances[n].ID])
	}
	return nil
}

// addHolders adds the instances to which consumers with allocations on the host belong.
func (c *Backend) addHolders(ctx context.Context, host string, consumers map[string]map[string]int64, instances map[string]inventory.Instance) error {
	var strange []string
	for id := range consumers {
		found, err := c.addServer(ctx, id, host, instances)
		if err != nil {
			return err
		}
		if !found {
			strange = append(strange, id)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	migrations, err := c.compute.MigrationsFrom(ctx, host)
	if err != nil {
		return err
	}
	for _, id := range strange {
		at := slices.IndexFunc(migrations, func(m nova.Migration) bool { return m.ID == id })
		found := false
		if at >= 0 {
			if found, err = c.addServer(ctx, migrations[at].Server, host, instances); err != nil {
				return err
			}
		}
		if !found {
			instances[id] = inventory.Instance{ID: id, Host: host}
		}
	}
	return nil
}

// addServer adds the server with the id, if it exists, to the instances on the host.
func (c *Backend) addServer(ctx context.Context, id, host string, instances map[string]inventory.Instance) (found bool, err error) {
	if _, there := instances[id]; there {
		return true, nil
	}
	s, err := c.compute.Server(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.Host = host
	instances[id] = s.Instance
	return true, nil
}

// Of returns the instances that were created in the reservation, wherever they are, sorted by
// ID: instances of its project whose flavor named the reservation when they were created, and
// those that were placed by its hint.
func (c *Backend) Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error) {
	var own []inventory.Instance
	for _, project := range r.Projects() {
		servers, err := c.compute.Servers(ctx, nova.ServerQuery{Project: project})
		if err != nil {
			return nil, fmt.Errorf("find the instances of reservation %s: %w", r.ID, err)
		}
		for i := range servers {
			own = append(own, servers[i].Instance)
		}
	}
	if err := c.recognize(ctx, own); err != nil {
		return nil, fmt.Errorf("find the instances of reservation %s: %w", r.ID, err)
	}
	own = slices.DeleteFunc(own, func(i inventory.Instance) bool { return i.ReservationID() != r.ID })
	slices.SortFunc(own, byID)
	return own, nil
}

// Server returns the present state of the instance with the id. It fails with a NotFound fault if
// there is none.
func (c *Backend) Server(ctx context.Context, id string) (inventory.Instance, error) {
	s, err := c.compute.Server(ctx, id)
	if err != nil {
		return inventory.Instance{}, err
	}
	one := []inventory.Instance{s.Instance}
	err = c.recognize(ctx, one)
	return one[0], err
}

// Exists reports whether Nova has an instance with the id.
func (c *Backend) Exists(ctx context.Context, id string) (bool, error) {
	_, err := c.compute.Server(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}
