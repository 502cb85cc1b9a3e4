// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// open reports whether the scheduler admits an instance of the reservation to the host.
func (w *town) open(n int, host string) bool {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	return w.takes(host, w.flavors[id(n)])
}

// shut reports whether the host is in the fence.
func (w *town) shut(host string) bool {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	return !w.takes(host, inventory.Flavor{})
}

func (w *town) leave(instance string) {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	delete(w.guests, instance)
}

// promise replaces the reservation's hosts from now on, as healing and changes do.
func (w *town) promise(n int, hosts ...string) {
	r, _ := w.Reservation(id(n))
	rooms := r.Claims[0].Slices
	r.Claims = nil
	for _, host := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: host, Span: r.Span, Slices: rooms})
		r.Claims[len(r.Claims)-1].Span.Start = w.Now()
	}
	w.set(r)
}

func TestAHostThatJoinsAnActiveReservationIsOpenedWhenItIsFree(t *testing.T) {
	for _, kind := range []reservation.Kind{reservation.Hosts, reservation.Instances} {
		w := newTown(t, "a", "b", "c")
		w.bookKind(kind, 1, 0, "a")
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		w.putStranger("theirs", "b", nil)
		w.promise(1, "a", "b", "c")
		w.prepare()
		if w.open(1, "b") {
			t.Errorf("%s: the owner is admitted to host b while a stranger's instance runs there", kind)
		}
		if !w.shut("b") {
			t.Errorf("%s: the promised host b still admits strangers' instances", kind)
		}
		if !w.open(1, "c") {
			t.Errorf("%s: host c is free, but the owner is not admitted to it", kind)
		}
		w.leave("theirs")
		w.prepare()
		if !w.open(1, "b") {
			t.Errorf("%s: the owner is not admitted to host b when it is free", kind)
		}
	}
}

func TestStrangersOnAHostThatJoinsAreToldToGoAsConfigured(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.putStranger("spot", "b", preemptible)
	w.putStranger("normal", "c", nil)
	w.promise(1, "a", "b", "c")
	for range 5 {
		w.prepare()
	}
	if got := fmt.Sprint(w.given()); got != "[delete spot]" {
		t.Errorf("orders %s", got)
	}
	if !w.open(1, "b") || w.open(1, "c") {
		t.Errorf("open to the owner: b %v, which was cleared, c %v, which is occupied", w.open(1, "b"), w.open(1, "c"))
	}
}

func TestAHostOfWhichNobodyKnowsWhoIsThereDoesNotJoin(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.promise(1, "a", "b")
	w.wrong["on"] = errors.New("EOF")
	w.pass(20)
	if err := w.Prepare(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	if w.open(1, "b") {
		t.Error("the owner is admitted to host b although its instances are unknown")
	}
	delete(w.wrong, "on")
	w.prepare()
	if !w.open(1, "b") {
		t.Error("the owner is not admitted to host b")
	}
}

func TestAHostJoinsOnlyAfterItIsInTheFence(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.promise(1, "a", "b")
	w.slow = func(kind string) { // an admin removes the host from the fence again
		w.modelCloud.mu.Lock()
		defer w.modelCloud.mu.Unlock()
		if kind == "layout" {
			w.aggregates[fence.Aggregate].Hosts = []string{"a"}
		}
	}
	w.prepare()
	if w.shut("b") || w.open(1, "b") {
		t.Errorf("host b: in the fence %v, open to the owner %v; want neither", w.shut("b"), w.open(1, "b"))
	}
	w.slow = nil
	w.prepare()
	if !w.shut("b") || !w.open(1, "b") {
		t.Errorf("host b: in the fence %v, open to the owner %v; want both", w.shut("b"), w.open(1, "b"))
	}
}

func TestAStartKeepsTheOwnerOffSkippedHostsWithStrangers(t *testing.T) {
	for _, kind := range []reservation.Kind{reservation.Hosts, reservation.Instances} {
		w := newTown(t, "a", "b", "c")
		w.bookKind(kind, 1, 60, "a", "b", "c")
		w.prepare()
		w.putStranger("theirs", "b", nil)
		for _, host := range []string{"b", "c"} {
			w.ails[host] = func(h *inventory.Host) { h.Problem = "its nova-compute is down" }
		}
		w.pass(40)
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		clear(w.ails)
		if w.open(1, "b") {
			t.Errorf("%s: host b is back, and the owner is admitted at once while a stranger's instance runs there", kind)
		}
		if !w.open(1, "a") || !w.open(1, "c") {
			t.Errorf("%s: open to the owner: a %v, c %v, want the free ones", kind, w.open(1, "a"), w.open(1, "c"))
		}
		w.prepare()
		if w.open(1, "b") {
			t.Errorf("%s: the preparation admits the owner to host b", kind)
		}
		w.leave("theirs")
		w.prepare()
		if !w.open(1, "b") {
			t.Errorf("%s: the owner is not admitted to host b when it is free", kind)
		}
	}
}

func TestAPendingReservationIsPreparedOnOccupiedHostsToo(t *testing.T) {
	w := newTown(t, "a", "b")
	w.rules.Normal = upkeep.OrderWait
	w.book(1, 300, "a")
	w.putStranger("theirs", "a", nil)
	w.prepare()
	l, _ := w.modelCloud.Layout(t.Context())
	if !slices.Contains(l.Traits["a"], fence.OwnName(id(1))) || w.admitted(1) {
		t.Errorf("traits %v, admitted %v; want all prepared and the owner not admitted", l.Traits["a"], w.admitted(1))
	}
}

func TestAHostThatWasPreparedAndGivenUpBeforeTheStartIsNotTheOwners(t *testing.T) {
	for _, kind := range []reservation.Kind{reservation.Hosts, reservation.Instances} {
		w := newTown(t, "a", "b", "c")
		w.bookKind(kind, 1, 10, "a", "b")
		w.prepare()
		r, _ := w.Reservation(id(1))
		r.Claims[1].Host = "c"
		w.set(r)
		w.pass(10)
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		if !w.open(1, "a") || !w.open(1, "c") || w.open(1, "b") {
			t.Errorf("kind %s: the owner's instances may run on a: %v, b: %v, c: %v; b is no longer the owner's", kind, w.open(1, "a"), w.open(1, "b"), w.open(1, "c"))
		}
	}
}
