// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func byID(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) }

// Order sends Nova the next request that the order requires in the instance's current state.
// Some orders need two: a shelved instance may still have to be offloaded, and an instance
// that was moved while stopped holds its old place until the move is confirmed. A second
// Order sends the second request. Order sends nothing while Nova is at work on the order.
// A preemptible instance that has left i.Host, where it was to make room, is not ordered
// where it is now: at most its move is confirmed.
//
// Order fails with a Conflict fault if the state of the instance does not allow it.
func (c *Backend) Order(ctx context.Context, i inventory.Instance, order upkeep.Order) error {
	now, err := c.compute.Server(ctx, i.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		now.Preemptible = i.Preemptible
		err = c.sendNext(ctx, now, i.Host, order)
	}
	return fault.While(err, "%s instance %s", order, i.ID)
}

func (c *Backend) sendNext(ctx context.Context, now nova.Server, from string, order upkeep.Order) error {
	what := next(&now.Instance, from, order)
	if what == remove && lostDeletion(&now, c.now()) {
		if err := c.compute.ResetServer(ctx, now.ID); err != nil {
			return err
		}
	}
	return c.send(ctx, &now.Instance, what)
}

// deletionTakes is after how many seconds without a change a deletion counts as lost.
const deletionTakes = 120

// lostDeletion reports whether nothing has happened to a server since Nova began to delete it. If
// RabbitMQ dies with the message to nova-compute, Nova ignores all later requests to delete the
// server (nova/compute/api.py _delete) until its state is reset. If nova-compute is deleting it
// after all, a second deletion waits for the first and finds nothing to do.
func lostDeletion(s *nova.Server, now span.Instant) bool {
	return s.Task == "deleting" && now >= s.Updated.Add(deletionTakes)
}

// call is a request to Nova.
type call string

const (
	nothing  call = "nothing" // the order is carried out, or in progress
	remove   call = "delete"
	stop     call = "stop"
	shelve   call = "shelve"
	offload  call = "offload"
	moveLive call = "migrate live"
	move     call = "migrate"
	confirm  call = "confirm"
	refuse   call = "refuse"
)

// next returns the next request for an instance that must stop, or leave the host from, which may
// be "". Statuses are those of nova/api/openstack/common.py, tasks those of
// nova/compute/task_states.py.
func next(i *inventory.Instance, from string, order upkeep.Order) call {
	offloaded := i.Status == "SHELVED_OFFLOADED"
	if i.Preemptible && (order == upkeep.OrderDelete || order == upkeep.OrderShelve) && hasLeft(i, from) {
		return nextMove(i, from)
	}
	switch order {
	case upkeep.OrderDelete:
		return remove
	case upkeep.OrderStop:
		if offloaded || i.Status == "SHUTOFF" || i.Status == "SHELVED" || i.Task == "powering-off" || shelving(i) {
			return nothing
		}
		return stop
	case upkeep.OrderShelve:
		switch {
		case offloaded || shelving(i):
			return nothing
		case i.Status == "SHELVED":
			return offload
		}
		return shelve
	case upkeep.OrderMigrate:
		return nextMove(i, from)
	}
	return refuse
}

func nextMove(i *inventory.Instance, from string) call {
	moving := i.Task == "migrating" || strings.HasPrefix(i.Task, "resize_")
	switch {
	case i.Status == "VERIFY_RESIZE":
		return confirm
	case moving || shelving(i), i.Host == "" || from != "" && i.Host != from:
		return nothing
	}
	switch i.Status {
	case "ACTIVE", "PAUSED":
		return moveLive
	case "SHUTOFF":
		return move
	case "SHELVED":
		return offload
	}
	return refuse
}

// hasLeft reports whether the instance is on another host than from, although it may still have
// allocations there. An instance without a host counts as on its way to from.
func hasLeft(i *inventory.Instance, from string) bool {
	return from != "" && i.Host != from && (i.Host != "" || i.Status == "SHELVED_OFFLOADED")
}

func shelving(i *inventory.Instance) bool { return strings.HasPrefix(i.Task, "shelving") }

func (c *Backend) send(ctx context.Context, i *inventory.Instance, what call) error {
	switch what {
	case nothing:
		return nil
	case remove:
		return c.compute.DeleteServer(ctx, i.ID)
	case stop:
		return c.compute.StopServer(ctx, i.ID)
	case shelve:
		return c.compute.ShelveServer(ctx, i.ID)
	case offload:
		return c.compute.OffloadServer(ctx, i.ID)
	case moveLive:
		return c.compute.LiveMigrateServer(ctx, i.ID)
	case move:
		return c.compute.MigrateServer(ctx, i.ID)
	case confirm:
		return c.confirm(ctx, i)
	}
	return fault.New(fault.Conflict, "Nova does not allow that for an instance that is %s", i.Status)
}

// confirm confirms a migration. It does not confirm a resize, which is the decision of the
// instance's owner.
func (c *Backend) confirm(ctx context.Context, i *inventory.Instance) error {
	migrations, err := c.compute.MigrationsOf(ctx, i.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(migrations, func(m nova.Migration) bool { return m.Status == "finished" })
	switch {
	case at < 0: // it is being confirmed, or reverted
		return nil
	case migrations[at].Type != "migration":
		return fault.New(fault.Conflict, "its owner has resized it and must confirm or revert the resize first")
	}
	return c.compute.ConfirmMigration(ctx, i.ID)
}
