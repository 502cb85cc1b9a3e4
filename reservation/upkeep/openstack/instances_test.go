// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

func TestInstancesOfAReservationComeInUntilItIsFullAndNobodyElse(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Instances, 1) // of two instances
	host := r.Claims[0].Host
	l.lay(r)
	if early := l.boot(l.owner, r.ID, ""); early.Status != "ERROR" {
		t.Errorf("before the owner is admitted, the owner's instance is %s on %q", early.Status, early.Host)
	}
	l.must(l.cloud.Admit(t.Context(), r))
	var own []string
	for range 2 {
		i := l.boot(l.owner, r.ID, "")
		if i.Status != "ACTIVE" || i.Host != host || i.ReservationID() != r.ID {
			t.Fatalf("the instance is %s on %q, of reservation %q", i.Status, i.Host, i.ReservationID())
		}
		own = append(own, i.ID)
	}
	slices.Sort(own)
	if third := l.boot(l.owner, r.ID, ""); third.Status != "ERROR" {
		t.Errorf("a third instance is %s on %q", third.Status, third.Host)
	}
	if stranger := l.boot(l.admin, l.tiny(), host); stranger.Status != "ERROR" {
		t.Errorf("a stranger is %s on %q", stranger.Status, stranger.Host)
	}
	if on := ids(l.on(host)); !slices.Equal(on, own) {
		t.Errorf("on the host are %v, want %v", on, own)
	}
	of, err := l.cloud.Of(t.Context(), r)
	l.must(err)
	if len(of) != 4 || slices.ContainsFunc(of, func(i inventory.Instance) bool { return i.ProjectID != r.ProjectID }) {
		t.Errorf("the reservation has %v, want its two and the two that failed", ids(of))
	}
	err = l.cloud.Carry(t.Context(), l.taking(r, host))
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), r.ID) {
		t.Errorf("removal of rooms that instances use: %v", err)
	}
	l.must(l.cloud.Expel(t.Context(), r))
	if id := l.ask(l.owner, r.ID, ""); id != "" {
		t.Error("the owner is still admitted after Expel")
	}
	for _, i := range of {
		l.order(i, upkeep.OrderDelete)
		l.order(i, upkeep.OrderDelete)
	}
	l.await("the host is empty", func() bool { return len(l.on(host)) == 0 })
	for _, i := range of {
		l.order(i, upkeep.OrderDelete)
	}
}

func TestAReservedHostIsTheOwnersAlone(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 1)
	host := r.Claims[0].Host
	l.lay(r)
	l.must(l.cloud.Admit(t.Context(), r))
	for _, flavor := range []string{r.ID + "-small", r.ID + "-small"} {
		if i := l.boot(l.owner, flavor, ""); i.Status != "ACTIVE" || i.Host != host {
			t.Errorf("an instance of flavor %s is %s on %q, want it on %s", flavor, i.Status, i.Host, host)
		}
	}
	if stranger := l.boot(l.admin, l.tiny(), host); stranger.Status != "ERROR" {
		t.Errorf("a stranger is %s on %q", stranger.Status, stranger.Host)
	}
}

// From the scheduler's choice of the host until the instance has left the host, every call of
// On returns the instance.
func TestAnInstanceIsOnItsHostFromTheChoiceUntilItIsGone(t *testing.T) {
	l := newLab(t)
	host := l.free[0]
	id := l.ask(l.admin, l.tiny(), host)
	seen := func() bool { return slices.Contains(ids(l.on(host)), id) }
	l.await("the host is chosen", seen)
	l.await("the instance runs", func() bool {
		if !seen() {
			t.Fatal("On misses the instance while Nova builds it")
		}
		s, err := l.compute.Server(t.Context(), id)
		l.must(err)
		return s.Status == "ACTIVE"
	})
	guests := l.on(host)
	if len(guests) != 1 || guests[0].Host != host || guests[0].Flavor.Name != "m1.tiny" || guests[0].Preemptible {
		t.Errorf("on the host is %+v", guests)
	}
	l.order(guests[0], upkeep.OrderDelete)
	l.await("the instance is gone", func() bool {
		there := seen()
		s, err := l.compute.Server(t.Context(), id)
		if fault.Is(err, fault.NotFound) || err == nil && s.Status == "DELETED" { // for a moment, before it is gone
			return true
		}
		l.must(err)
		if !there && s.Host == host {
			t.Fatalf("On misses the instance while it is %s %s", s.Status, s.Task)
		}
		return false
	})
	l.await("the host is empty", func() bool { return len(l.on(host)) == 0 })
}

// Nova ignores a request to delete a server that it is deleting already.
func TestAServerWhoseDeletionWasLostIsDeletedNonetheless(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.admin, l.tiny(), l.free[0])
	began := func(at time.Time) {
		labtest.OpenStack(t).StoreServer(t, i.ID, map[string]any{"task_state": "deleting", "updated_at": at.UTC().Format(time.DateTime)})
	}
	began(time.Now())
	l.order(i, upkeep.OrderDelete)
	if s, err := l.compute.Server(t.Context(), i.ID); err != nil || s.Status != "ACTIVE" || s.Task != "deleting" {
		t.Errorf("a server that Nova has just begun to delete is %s %q (%v), want it left alone", s.Status, s.Task, err)
	}
	began(time.Now().Add(-3 * time.Minute))
	l.order(i, upkeep.OrderDelete)
	l.await("the host is empty", func() bool { return len(l.on(i.Host)) == 0 })
}

func TestWhoWasPlacedByAHintIsKnownWhereNovaDoesNotTellIt(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 1)
	i := l.boot(l.admin, l.tiny(), r.Claims[0].Host)
	r.ProjectID = i.ProjectID
	known := func(want string, preemptible bool) {
		t.Helper()
		on := l.on(i.Host)
		of, err := l.cloud.Of(t.Context(), r)
		l.must(err)
		if len(on) != 1 || on[0].ReservationID() != want || on[0].Preemptible != preemptible {
			t.Errorf("on the host is %+v, want one of reservation %q, preemptible %v", on, want, preemptible)
		}
		if got := slices.Contains(ids(of), i.ID); got != (want == r.ID) {
			t.Errorf("the instance belongs to the reservation: %v", got)
		}
	}
	known("", false)
	l.guests[i.ID] = inventory.InstanceRecord{Reservation: r.ID, Preemptible: true}
	known(r.ID, true)
	for id, want := range map[string]bool{i.ID: true, uuid.NewString(): false} {
		if there, err := l.cloud.Exists(t.Context(), id); there != want || err != nil {
			t.Errorf("the instance exists: %v, %v; want %v", there, err, want)
		}
	}
	l.order(i, upkeep.OrderDelete)
	l.await("the host is empty", func() bool { return len(l.on(i.Host)) == 0 })
}

func TestAPlaceOfWhichOnlyPlacementKnowsIsAGuest(t *testing.T) {
	l := newLab(t)
	host, consumer := l.free[0], uuid.NewString()
	before := l.compute.Calls()
	if guests := l.on(host); len(guests) > 0 || l.compute.Calls() != before {
		t.Errorf("an empty host has %v, after %d calls to Nova", guests, l.compute.Calls()-before)
	}
	l.admin.Must("PUT", "placement", "/allocations/"+consumer, map[string]any{
		"allocations": map[string]any{l.provider(host): map[string]any{"resources": map[string]int64{"VCPU": 1}}},
		"project_id":  "test", "user_id": "test", "consumer_generation": nil, "consumer_type": "INSTANCE",
	}, nil)
	t.Cleanup(func() { l.admin.Must("DELETE", "placement", "/allocations/"+consumer, nil, nil) })
	guests := l.on(host)
	if len(guests) != 1 || guests[0].ID != consumer || guests[0].Host != host || guests[0].Status != "" {
		t.Errorf("on the host is %+v", guests)
	}
	for _, order := range []upkeep.Order{upkeep.OrderDelete, upkeep.OrderStop, upkeep.OrderShelve, upkeep.OrderMigrate} {
		l.order(guests[0], order)
	}
}

func TestARunningInstanceIsMigratedLive(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.admin, l.tiny(), l.free[0])
	l.order(i, upkeep.OrderMigrate)
	l.order(i, upkeep.OrderMigrate)
	moved := l.settled(i.ID, func(now inventory.Instance) bool { return now.Host != i.Host })
	if moved.Status != "ACTIVE" {
		t.Errorf("the instance is %s", moved.Status)
	}
	l.order(i, upkeep.OrderMigrate)
	if again := l.settled(i.ID, func(inventory.Instance) bool { return true }); again.Host != moved.Host {
		t.Errorf("a second order moves the instance from %s to %s", moved.Host, again.Host)
	}
	l.await("its old host is empty", func() bool { return len(l.on(i.Host)) == 0 })
}

func TestAStoppedInstanceIsMigratedColdAndHoldsItsPlaceUntilThatIsConfirmed(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.admin, l.tiny(), l.free[0])
	l.order(i, upkeep.OrderStop)
	l.order(i, upkeep.OrderStop)
	l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "SHUTOFF" })
	l.order(i, upkeep.OrderStop)
	l.order(i, upkeep.OrderMigrate)
	l.order(i, upkeep.OrderMigrate)
	l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "VERIFY_RESIZE" })
	guests := l.on(i.Host)
	if len(guests) != 1 || guests[0].ID != i.ID || guests[0].Host != i.Host || guests[0].Status != "VERIFY_RESIZE" {
		t.Fatalf("on the old host is %+v, want the instance", guests)
	}
	l.order(guests[0], upkeep.OrderMigrate)
	l.order(guests[0], upkeep.OrderMigrate)
	l.await("its old host is empty", func() bool { return len(l.on(i.Host)) == 0 })
	if moved := l.settled(i.ID, func(inventory.Instance) bool { return true }); moved.Status != "SHUTOFF" || moved.Host == i.Host {
		t.Errorf("the instance is %s on %s", moved.Status, moved.Host)
	}
}

func TestAPreemptibleInstanceThatHasMovedIsNotDeletedToMakeRoomWhereItWas(t *testing.T) {
	l := newLab(t)
	id := uuid.NewString()
	l.flavor(id, id, map[string]string{"almanac:preemptible": "true"})
	i := l.boot(l.admin, id, l.free[0])
	l.order(i, upkeep.OrderStop)
	l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "SHUTOFF" })
	l.admin.Must("POST", "compute", "/servers/"+i.ID+"/action", map[string]any{"migrate": nil}, nil)
	l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "VERIFY_RESIZE" })
	guests := l.on(i.Host)
	if len(guests) != 1 || !guests[0].Preemptible || guests[0].Host != i.Host {
		t.Fatalf("on the old host is %+v, want the instance", guests)
	}
	l.order(guests[0], upkeep.OrderDelete)
	l.order(guests[0], upkeep.OrderShelve)
	l.await("its old host is empty", func() bool { return len(l.on(i.Host)) == 0 })
	l.order(guests[0], upkeep.OrderDelete)
	if moved := l.settled(i.ID, func(inventory.Instance) bool { return true }); moved.Status != "SHUTOFF" || moved.Host == i.Host {
		t.Errorf("the instance is %s on %s", moved.Status, moved.Host)
	}
}

func TestAResizeOfItsOwnerIsNotConfirmedForHim(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 1) // for flavors of this test
	l.lay(r)
	l.must(l.cloud.Admit(t.Context(), r))
	i := l.boot(l.admin, r.ID+"-small", "")
	if i.Status != "ACTIVE" {
		t.Fatalf("the instance is %s", i.Status)
	}
	l.admin.Must("POST", "compute", "/servers/"+i.ID+"/action", map[string]any{"resize": map[string]string{"flavorRef": l.tiny()}}, nil)
	i = l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "VERIFY_RESIZE" })
	if err := l.cloud.Order(t.Context(), i, upkeep.OrderMigrate); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), i.ID) {
		t.Errorf("got %v, want a conflict that names the instance", err)
	}
}

func TestALockedInstanceIsShelvedOffItsHostAndDeleted(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.owner, l.tiny(), "")
	l.owner.Must("POST", "compute", "/servers/"+i.ID+"/action", map[string]any{"lock": nil}, nil)
	l.order(i, upkeep.OrderShelve)
	l.order(i, upkeep.OrderShelve)
	off := l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "SHELVED_OFFLOADED" && now.Host == "" })
	if !off.Locked {
		t.Errorf("the instance is %+v", off)
	}
	l.order(off, upkeep.OrderShelve)
	l.order(off, upkeep.OrderDelete)
	l.await("the instance is gone", func() bool {
		return l.admin.Do("GET", "compute", "/servers/"+i.ID, nil, nil) == http.StatusNotFound
	})
}

func TestAnOrderThatTheStateDoesNotAllowIsAConflict(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.owner, l.tiny(), "")
	l.owner.Must("POST", "compute", "/servers/"+i.ID+"/action", map[string]any{"suspend": nil}, nil)
	i = l.settled(i.ID, func(now inventory.Instance) bool { return now.Status == "SUSPENDED" })
	for _, order := range []upkeep.Order{upkeep.OrderMigrate, upkeep.OrderStop} {
		err := l.cloud.Order(t.Context(), i, order)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), i.ID) {
			t.Errorf("%s: got %v, want a conflict that names the instance", order, err)
		}
	}
}

func TestAnImageOfAnInstanceIsMadeOnceAndItsOwnerMaySeeIt(t *testing.T) {
	l := newLab(t)
	i := l.boot(l.owner, l.tiny(), "")
	since := span.Instant(time.Now().Unix()) - 60
	name := "reserved_" + i.ID
	images := func(who *labtest.REST) (ids []string) {
		var list struct{ Images []struct{ ID string } }
		who.Must("GET", "image", "/v2/images?name="+name+"&visibility=shared&member_status=all", nil, &list)
		for _, image := range list.Images {
			ids = append(ids, image.ID)
		}
		return ids
	}
	l.must(l.cloud.Snapshot(t.Context(), i, name, since))
	l.await("the image is there", func() bool { return len(images(l.admin)) == 1 })
	t.Cleanup(func() {
		for _, id := range images(l.admin) {
			l.admin.Must("DELETE", "image", "/v2/images/"+id, nil, nil)
		}
	})
	l.settled(i.ID, func(inventory.Instance) bool { return true })
	l.must(l.cloud.Snapshot(t.Context(), i, name, since))
	l.settled(i.ID, func(inventory.Instance) bool { return true })
	if of := images(l.admin); len(of) != 1 {
		t.Errorf("a second order made an image too: %v", of)
	}
	if of := images(l.owner); len(of) != 1 {
		t.Errorf("the owner of the instance sees the images %v, want the one", of)
	}
	l.must(l.cloud.Snapshot(t.Context(), inventory.Instance{ID: "00000000-0000-0000-0000-000000000000"}, name, since))
}
