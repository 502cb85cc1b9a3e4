// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestWhatNovaIsToldFollowsFromTheOrderAndTheStateOfTheInstance(t *testing.T) {
	for _, c := range []struct {
		order              upkeep.Order
		status, task, host string
		want               call
	}{
		{upkeep.OrderDelete, "ACTIVE", "", "here", remove},
		{upkeep.OrderDelete, "SOFT_DELETED", "", "here", remove},
		{upkeep.OrderDelete, "BUILD", "spawning", "here", remove},
		{upkeep.OrderDelete, "ACTIVE", "deleting", "here", remove}, // its host may have died since then

		{upkeep.OrderStop, "ACTIVE", "", "here", stop},
		{upkeep.OrderStop, "ACTIVE", "powering-off", "here", nothing},
		{upkeep.OrderStop, "SHUTOFF", "", "here", nothing},
		{upkeep.OrderStop, "SHELVED", "", "here", nothing},
		{upkeep.OrderStop, "SHELVED_OFFLOADED", "", "", nothing},
		{upkeep.OrderStop, "ACTIVE", "migrating", "here", stop}, // Nova answers that the instance is migrating

		{upkeep.OrderShelve, "ACTIVE", "", "here", shelve},
		{upkeep.OrderShelve, "SHUTOFF", "", "here", shelve},
		{upkeep.OrderShelve, "ACTIVE", "shelving_image_uploading", "here", nothing},
		{upkeep.OrderShelve, "SHELVED", "", "here", offload},
		{upkeep.OrderShelve, "SHELVED", "shelving_offloading", "here", nothing},
		{upkeep.OrderShelve, "SHELVED_OFFLOADED", "", "", nothing},

		{upkeep.OrderMigrate, "ACTIVE", "", "here", moveLive},
		{upkeep.OrderMigrate, "PAUSED", "", "here", moveLive},
		{upkeep.OrderMigrate, "SHUTOFF", "", "here", move},
		{upkeep.OrderMigrate, "SHELVED", "", "here", offload},
		{upkeep.OrderMigrate, "SHELVED_OFFLOADED", "", "", nothing},
		{upkeep.OrderMigrate, "ACTIVE", "migrating", "here", nothing},
		{upkeep.OrderMigrate, "SHUTOFF", "resize_migrating", "here", nothing},
		{upkeep.OrderMigrate, "VERIFY_RESIZE", "", "there", confirm},
		{upkeep.OrderMigrate, "ACTIVE", "", "there", nothing}, // it has left the host already
		{upkeep.OrderMigrate, "SUSPENDED", "", "here", refuse},
		{upkeep.OrderMigrate, "ERROR", "", "here", refuse},

		{upkeep.OrderWait, "ACTIVE", "", "here", refuse},
	} {
		i := inventory.Instance{ID: "i", Status: c.status, Task: c.task, Host: c.host}
		if got := next(&i, "here", c.order); got != c.want {
			t.Errorf("%s of an instance that is %s %q on %q: %s, want %s", c.order, c.status, c.task, c.host, got, c.want)
		}
	}
}

func TestADeletionIsLostIfNothingHasHappenedForTwoMinutes(t *testing.T) {
	for _, c := range []struct {
		task string
		ago  int64
		lost bool
	}{{"deleting", 119, false}, {"deleting", 120, true}, {"spawning", 3600, false}, {"", 3600, false}} {
		s := nova.Server{Instance: inventory.Instance{Task: c.task}, Updated: 10_000}
		if got := lostDeletion(&s, s.Updated.Add(c.ago)); got != c.lost {
			t.Errorf("a server with the task %q and no change for %d s: the deletion is lost: %t, want %t", c.task, c.ago, got, c.lost)
		}
	}
}

func TestAPreemptibleOneIsToldNothingOnceItHasLeftTheHostOnWhichItWasToMakeRoom(t *testing.T) {
	for _, c := range []struct {
		what, status, task, host string
		want                     call
	}{
		{"it was moved", "ACTIVE", "", "there", nothing},
		{"it is shut off there", "SHUTOFF", "", "there", nothing},
		{"it is shelved there", "SHELVED", "", "there", nothing},
		{"it was shelved and offloaded", "SHELVED_OFFLOADED", "", "", nothing},
		{"it has moved and holds its old place", "VERIFY_RESIZE", "", "there", confirm},
	} {
		for _, order := range []upkeep.Order{upkeep.OrderMigrate, upkeep.OrderShelve, upkeep.OrderDelete} {
			i := inventory.Instance{ID: "i", Status: c.status, Task: c.task, Host: c.host, Preemptible: true}
			if got := next(&i, "here", order); got != c.want {
				t.Errorf("%s when %s: the call to Nova is %s, want %s", order, c.what, got, c.want)
			}
		}
	}
	for status, host := range map[string]string{"ACTIVE": "here", "VERIFY_RESIZE": "here", "ERROR": ""} {
		i := inventory.Instance{ID: "i", Status: status, Host: host, Preemptible: true}
		if got := next(&i, "here", upkeep.OrderDelete); got != remove {
			t.Errorf("an instance that is %s on %q has not left, but the call to Nova is %s", status, host, got)
		}
	}
	i := inventory.Instance{ID: "i", Status: "ACTIVE", Host: "there"}
	if got := next(&i, "here", upkeep.OrderDelete); got != remove {
		t.Errorf("the end of a reservation must delete a normal instance on any host, but the call to Nova is %s", got)
	}
}
