package openstack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func byID(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) }

// Order tells Nova the next thing that makes the order true, as the instance is now.
// Some orders take two: an instance that is shelved may have to be offloaded then, and
// one that was moved while it was stopped holds its old place until that is confirmed.
// Given again, the order does the second; what is under way already is left alone.
// A preemptible one that was to make room on i.Host and has left it is not touched
// where it is now: at most its move is confirmed.
//
// It fails with a Conflict fault where the instance's state does not allow it.
func (c *Cloud) Order(ctx context.Context, i inventory.Instance, order upkeep.Order) error {
	now, err := c.compute.Server(ctx, i.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		now.Preemptible = i.Preemptible
		err = c.tell(ctx, &now.Instance, next(&now.Instance, i.Host, order))
	}
	if err != nil {
		return fmt.Errorf("%s instance %s: %w", order, i.ID, err)
	}
	return nil
}

// call is what Nova is told.
type call string

const (
	nothing  call = "nothing" // it is as ordered, or is becoming so
	remove   call = "delete"
	stop     call = "stop"
	shelve   call = "shelve"
	offload  call = "offload"
	moveLive call = "migrate live"
	move     call = "migrate"
	confirm  call = "confirm"
	refuse   call = "refuse"
)

// next says what Nova is told about an instance that is to go from a host, which may
// be empty, or to stop. Statuses are those of nova/api/openstack/common.py, tasks those
// of nova/compute/task_states.py.
func next(i *inventory.Instance, from string, order upkeep.Order) call {
	offloaded := i.Status == "SHELVED_OFFLOADED"
	if i.Preemptible && (order == upkeep.DeleteGuest || order == upkeep.ShelveGuest) && hasLeft(i, from) {
		return nextMove(i, from)
	}
	switch order {
	case upkeep.DeleteGuest:
		return remove
	case upkeep.StopGuest:
		if offloaded || i.Status == "SHUTOFF" || i.Status == "SHELVED" || i.Task == "powering-off" || shelving(i) {
			return nothing
		}
		return stop
	case upkeep.ShelveGuest:
		switch {
		case offloaded || shelving(i):
			return nothing
		case i.Status == "SHELVED":
			return offload
		}
		return shelve
	case upkeep.MigrateGuest:
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

// hasLeft says that the instance is elsewhere, though it may hold a place on from. One
// that is nowhere yet is on its way there.
func hasLeft(i *inventory.Instance, from string) bool {
	return from != "" && i.Host != from && (i.Host != "" || i.Status == "SHELVED_OFFLOADED")
}

func shelving(i *inventory.Instance) bool { return strings.HasPrefix(i.Task, "shelving") }

func (c *Cloud) tell(ctx context.Context, i *inventory.Instance, what call) error {
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
	return fault.New(fault.Conflict, "Nova does not do that with one that is %s", i.Status)
}

// confirm confirms a migration, and leaves alone a resize: whether that was right is
// for the instance's owner to say.
func (c *Cloud) confirm(ctx context.Context, i *inventory.Instance) error {
	migrations, err := c.compute.MigrationsOf(ctx, i.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(migrations, func(m nova.Migration) bool { return m.Status == "finished" })
	switch {
	case at < 0: // it is being confirmed, or reverted
		return nil
	case migrations[at].Type != "migration":
		return fault.New(fault.Conflict, "its owner has resized it and not confirmed that yet")
	}
	return c.compute.ConfirmMigration(ctx, i.ID)
}
