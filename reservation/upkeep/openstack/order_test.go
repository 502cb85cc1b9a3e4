package openstack

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestWhatNovaIsToldFollowsFromTheOrderAndTheStateOfTheInstance(t *testing.T) {
	for _, c := range []struct {
		order              upkeep.Order
		status, task, host string
		want               call
	}{
		{upkeep.DeleteGuest, "ACTIVE", "", "here", remove},
		{upkeep.DeleteGuest, "SOFT_DELETED", "", "here", remove},
		{upkeep.DeleteGuest, "BUILD", "spawning", "here", remove},
		{upkeep.DeleteGuest, "ACTIVE", "deleting", "here", remove}, // its host may have died since then

		{upkeep.StopGuest, "ACTIVE", "", "here", stop},
		{upkeep.StopGuest, "ACTIVE", "powering-off", "here", nothing},
		{upkeep.StopGuest, "SHUTOFF", "", "here", nothing},
		{upkeep.StopGuest, "SHELVED", "", "here", nothing},
		{upkeep.StopGuest, "SHELVED_OFFLOADED", "", "", nothing},
		{upkeep.StopGuest, "ACTIVE", "migrating", "here", stop}, // Nova answers that the instance is migrating

		{upkeep.ShelveGuest, "ACTIVE", "", "here", shelve},
		{upkeep.ShelveGuest, "SHUTOFF", "", "here", shelve},
		{upkeep.ShelveGuest, "ACTIVE", "shelving_image_uploading", "here", nothing},
		{upkeep.ShelveGuest, "SHELVED", "", "here", offload},
		{upkeep.ShelveGuest, "SHELVED", "shelving_offloading", "here", nothing},
		{upkeep.ShelveGuest, "SHELVED_OFFLOADED", "", "", nothing},

		{upkeep.MigrateGuest, "ACTIVE", "", "here", moveLive},
		{upkeep.MigrateGuest, "PAUSED", "", "here", moveLive},
		{upkeep.MigrateGuest, "SHUTOFF", "", "here", move},
		{upkeep.MigrateGuest, "SHELVED", "", "here", offload},
		{upkeep.MigrateGuest, "SHELVED_OFFLOADED", "", "", nothing},
		{upkeep.MigrateGuest, "ACTIVE", "migrating", "here", nothing},
		{upkeep.MigrateGuest, "SHUTOFF", "resize_migrating", "here", nothing},
		{upkeep.MigrateGuest, "VERIFY_RESIZE", "", "there", confirm},
		{upkeep.MigrateGuest, "ACTIVE", "", "there", nothing}, // it has left the host already
		{upkeep.MigrateGuest, "SUSPENDED", "", "here", refuse},
		{upkeep.MigrateGuest, "ERROR", "", "here", refuse},

		{upkeep.AwaitGuest, "ACTIVE", "", "here", refuse},
	} {
		i := inventory.Instance{ID: "i", Status: c.status, Task: c.task, Host: c.host}
		if got := next(&i, "here", c.order); got != c.want {
			t.Errorf("%s of an instance that is %s %q on %q: %s, want %s", c.order, c.status, c.task, c.host, got, c.want)
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
		for _, order := range []upkeep.Order{upkeep.MigrateGuest, upkeep.ShelveGuest, upkeep.DeleteGuest} {
			i := inventory.Instance{ID: "i", Status: c.status, Task: c.task, Host: c.host, Preemptible: true}
			if got := next(&i, "here", order); got != c.want {
				t.Errorf("%s when %s: the call to Nova is %s, want %s", order, c.what, got, c.want)
			}
		}
	}
	for status, host := range map[string]string{"ACTIVE": "here", "VERIFY_RESIZE": "here", "ERROR": ""} {
		i := inventory.Instance{ID: "i", Status: status, Host: host, Preemptible: true}
		if got := next(&i, "here", upkeep.DeleteGuest); got != remove {
			t.Errorf("an instance that is %s on %q has not left, but the call to Nova is %s", status, host, got)
		}
	}
	i := inventory.Instance{ID: "i", Status: "ACTIVE", Host: "there"}
	if got := next(&i, "here", upkeep.DeleteGuest); got != remove {
		t.Errorf("the end of a reservation must delete a normal instance on any host, but the call to Nova is %s", got)
	}
}
