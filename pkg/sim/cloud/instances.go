// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// Fence implements the ports of fences and of the instances of reservations.
type Fence struct {
	Cloud *Cloud
	// Records are what was stored about instances when they were placed.
	Records inventory.InstanceRecords
	// Resting returns those of the servers that best-effort work has suspended, and whose
	// allocations were removed.
	Resting func(ctx context.Context, servers ...string) (map[string]bool, error)
}

// On implements upkeep.Instances.
func (f Fence) On(ctx context.Context, host string) ([]inventory.Instance, error) {
	all := f.Cloud.Servers(func(s *Server) bool { return s.Host == host || s.to == host })
	var resting []string
	for i := range all {
		if s := &all[i]; s.Status == suspended && s.Task == "" && s.Locked {
			resting = append(resting, s.ID)
		}
	}
	rests := map[string]bool{}
	if len(resting) > 0 && f.Resting != nil {
		var err error
		if rests, err = f.Resting(ctx, resting...); err != nil {
			return nil, fmt.Errorf("read the instances on host %s: %w", host, err)
		}
	}
	var on []inventory.Instance
	for i := range all {
		if !rests[all[i].ID] {
			on = append(on, all[i].Instance)
			on[len(on)-1].Host = host
		}
	}
	return f.recognized(ctx, on)
}

// recognized adds to instances what was stored about them.
func (f Fence) recognized(ctx context.Context, list []inventory.Instance) ([]inventory.Instance, error) {
	if len(list) == 0 {
		return list, nil
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	records, err := f.Records.InstanceRecords(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read what was stored about instances: %w", err)
	}
	for i := range list {
		list[i] = f.Cloud.recognized(list[i], records)
	}
	return list, nil
}

// Of implements upkeep.Instances.
func (f Fence) Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error) {
	var all []inventory.Instance
	projects := r.Projects()
	for _, s := range f.Cloud.Servers(func(s *Server) bool { return slices.Contains(projects, s.ProjectID) }) {
		all = append(all, s.Instance)
	}
	all, err := f.recognized(ctx, all)
	if err != nil {
		return nil, err
	}
	var own []inventory.Instance
	for _, i := range all {
		if i.ReservationID() == r.ID {
			own = append(own, i)
		}
	}
	return own, nil
}

// Server implements eviction.Servers.
func (f Fence) Server(ctx context.Context, id string) (inventory.Instance, error) {
	s, err := f.Cloud.Server(ctx, id)
	if err != nil {
		return inventory.Instance{}, err
	}
	list, err := f.recognized(ctx, []inventory.Instance{s.Instance})
	if err != nil {
		return inventory.Instance{}, err
	}
	return list[0], nil
}

// Exists reports whether there is a server.
func (f Fence) Exists(ctx context.Context, id string) (bool, error) {
	_, err := f.Cloud.Server(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Order implements upkeep.Instances.
func (f Fence) Order(ctx context.Context, i inventory.Instance, order upkeep.Order) error {
	return fault.While(f.Cloud.order(ctx, i, order), "%s instance %s", order, i.ID)
}

// order orders the simulated Nova to delete, stop, shelve or migrate a server, unless that is done
// already.
func (c *Cloud) order(ctx context.Context, i inventory.Instance, order upkeep.Order) error {
	now, err := c.Server(ctx, i.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	left := i.Host != "" && now.Host != i.Host && (now.Host != "" || now.Status == offloaded)
	if left && (order == upkeep.OrderMigrate || i.Preemptible) {
		return nil // it was to make room on a host that it has left
	}
	switch order {
	case upkeep.OrderDelete:
		return c.Delete(ctx, i.ID, "")
	case upkeep.OrderStop, upkeep.OrderShelve, upkeep.OrderMigrate:
		return c.begin(i.ID, order)
	}
	return nil
}

// begin begins an order unless it is carried out or in progress.
func (c *Cloud) begin(id string, order upkeep.Order) error {
	defer c.enter()()
	s := c.servers[id]
	if s == nil || s.Status == offloaded {
		return nil
	}
	switch order {
	case upkeep.OrderStop:
		if s.Status == shutoff || s.Task == poweringOff || s.Task == shelving {
			return nil
		}
		if err := s.idle(active, "PAUSED"); err != nil {
			return err
		}
		c.do(s, poweringOff, c.o.Times.Stop, become(shutoff))
	case upkeep.OrderShelve:
		if s.Task == shelving {
			return nil
		}
		if err := s.idle(active, shutoff, "PAUSED", suspended); err != nil {
			return err
		}
		c.do(s, shelving, c.o.Times.Shelve, func(s *Server) {
			s.Status, s.Host = offloaded, ""
			c.free(s.ID)
		})
	case upkeep.OrderMigrate:
		if s.Task == migrating || s.Task == shelving {
			return nil
		}
		return c.migrate(s, "")
	}
	return nil
}

// errorGrace is for how many seconds a server in ERROR may have allocations.
const errorGrace = 120

// Unplaced implements upkeep.Claims.
func (f Fence) Unplaced(_ context.Context, now span.Instant) (list []inventory.Instance, _ error) {
	c := f.Cloud
	defer c.enter()()
	for _, s := range c.list(func(s *Server) bool { return s.Status == inError && s.Host == "" && now >= s.Updated.Add(errorGrace) }) {
		if _, has := c.placement.Consumers[s.ID]; has {
			list = append(list, s.Instance)
		}
	}
	return list, nil
}

// Release implements upkeep.Claims.
func (f Fence) Release(_ context.Context, id string) error {
	defer f.Cloud.enter()()
	if s := f.Cloud.servers[id]; s != nil && (s.Status != inError || s.Host != "") {
		return fault.New(fault.Conflict, "it is now %s on host %q", s.Status, s.Host)
	}
	f.Cloud.free(id)
	return nil
}

// Snapshot implements upkeep.Imager.
func (f Fence) Snapshot(_ context.Context, i inventory.Instance, name string, since span.Instant) error {
	c := f.Cloud
	defer c.enter()()
	s := c.servers[i.ID]
	if s == nil || s.Task == snapshotting || s.snapshot >= since {
		return nil
	}
	if err := s.idle(active, shutoff, "PAUSED", suspended); err != nil {
		return err
	}
	if len(c.images) >= mostImages {
		return fault.New(fault.Conflict, "the simulated cloud has %d images and takes no more", mostImages)
	}
	of, err := c.image(s.Image)
	if err != nil {
		return err
	}
	s.snapshot = span.At(c.o.Now())
	c.do(s, snapshotting, c.o.Times.Snapshot, func(*Server) {
		c.images = append(c.images, Image{ID: c.o.NewID(), Name: name, Bytes: of.Bytes})
	})
	return nil
}
