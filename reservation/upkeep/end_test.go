// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// finish advances the clock to the end of reservation 1 and carries the end out.
func (w *town) finish() error {
	w.pass(int64(noon.Add(1000) - w.Now()))
	return w.begin(1, reservation.EndEvent)
}

func TestTheInstancesOfTheOwnerAreDealtWithAsOnEndSays(t *testing.T) {
	for _, hinted := range []bool{false, true} {
		dealtWithAsOnEndSays(t, hinted)
	}
}

func dealtWithAsOnEndSays(t *testing.T, hinted bool) {
	for onEnd, want := range map[reservation.OnEnd]struct{ orders, a string }{
		reservation.OnEndDelete: {"[stop own-a stop own-b delete own-a delete own-b]", "gone"},
		reservation.OnEndStop:   {"[stop own-a stop own-b]", "SHUTOFF on a"},
		reservation.OnEndShelve: {"[shelve own-a shelve own-b]", "SHELVED_OFFLOADED on "},
		reservation.OnEndLeave:  {"[]", "ACTIVE on a"},
	} {
		w := newTown(t, "a", "b", "c", "d")
		w.hinted = hinted
		w.start(1, onEnd, "a", "b")
		w.putStranger("other", "c", preemptible)
		if err := w.finish(); err != nil {
			t.Fatalf("%s, by hint %v: %v", onEnd, hinted, err)
		}
		state := "gone"
		if i, there := w.guest("own-a"); there {
			state = i.Status + " on " + i.Host
		}
		orders := w.given()
		if len(orders) > 1 && orders[0] > orders[1] { // orders of one instant have no fixed order
			orders[0], orders[1] = orders[1], orders[0]
		}
		if len(orders) > 3 && orders[2] > orders[3] {
			orders[2], orders[3] = orders[3], orders[2]
		}
		if got := fmt.Sprint(orders); got != want.orders || state != want.a {
			t.Errorf("%s, by hint %v: orders %s, and the instance is %s; want %s and %s", onEnd, hinted, got, state, want.orders, want.a)
		}
		if left := w.traces(1); len(left) > 0 || w.admitted(1) {
			t.Errorf("%s, by hint %v: the cloud still has %v", onEnd, hinted, left)
		}
		if host, err := w.boot("next", "anybody", w.plainFlavor(), w.Now()); err != nil || host != "a" {
			t.Errorf("%s, by hint %v: the hosts are not back in the pool: %q, %v", onEnd, hinted, host, err)
		}
	}
}

// The owner may change the choice until the end is carried out.
func TestTheLastChoiceOfOnEndCounts(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	r := w.known[id(1)]
	r.OnEnd = reservation.OnEndShelve
	w.set(r)
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if i, there := w.guest("own-a"); !there || i.Status != "SHELVED_OFFLOADED" {
		t.Errorf("the instance is %+v, there %v; want it shelved", i, there)
	}
}

// plainFlavor returns a flavor that every project may use.
func (w *town) plainFlavor() string {
	w.addFlavor("m1.tiny", nil)
	return "m1.tiny"
}

func TestNobodyNewComesInWhileTheEndWaits(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	entered := false
	w.waited = func() {
		_, err := w.boot("late", "p1", id(1), w.Now())
		entered = entered || err == nil
	}
	if err := w.finish(); err != nil || entered {
		t.Errorf("the owner could still boot: %v; %v", entered, err)
	}
}

func TestAnInstanceThatDoesNotShutDownIsDeletedWhenTheGraceIsOver(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.looks = 1000 // the order to stop takes too long
	w.waited = func() {
		if strings.Contains(fmt.Sprint(w.given()), "delete") {
			w.modelCloud.mu.Lock()
			defer w.modelCloud.mu.Unlock()
			w.guests["own-a"].left = 0
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if took := w.Now() - noon.Add(1000); took < 60 || took > 70 {
		t.Errorf("the end took %d s, want the grace time of 60 s and little more", took)
	}
	if _, there := w.guest("own-a"); there {
		t.Error("the instance still exists")
	}
}

func TestAnInstanceThatRefusesToShutDownIsDeletedAllTheSame(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.fail["stop"] = fault.New(fault.Conflict, "the instance is in rescue")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if _, there := w.guest("own-a"); there {
		t.Error("the instance still exists")
	}
}

func TestThereIsNoGraceWhereTheNextOneWaits(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.book(2, 1030, "b", "c")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.given()); strings.Contains(got, "stop") || w.Now() > noon.Add(1005) {
		t.Errorf("orders %s, done %d s after the end", got, w.Now()-noon.Add(1000))
	}
	if host, err := w.boot("x", "anybody", w.plainFlavor(), w.Now()); err != nil || host != "a" {
		t.Errorf("host a is not back in the pool: %q, %v", host, err)
	}
	if host, err := w.boot("y", "anybody", "m1.tiny", w.Now()); err != nil || host == "b" {
		t.Errorf("host b is promised to the next reservation, but admits others: %q, %v", host, err)
	}
}

func TestBackToBackTheNextOneStartsWhenTheLastHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := running(t, reservation.OnEndDelete, "a", "b")
		w.book(2, 1000, "b", "a")
		began := time.Now()
		w.bubble = began
		time.Sleep(999 * time.Second)
		if err := w.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		var both sync.WaitGroup
		both.Go(func() {
			if err := w.begin(2, reservation.StartEvent); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := w.begin(1, reservation.EndEvent); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if late := time.Since(began) - 1000*time.Second; late > 5*time.Second {
			t.Errorf("the next reservation starts %v late", late)
		}
		if host, err := w.boot("mine", "p2", id(2), w.Now()); err != nil {
			t.Errorf("the next owner's instance went to %q: %v", host, err)
		}
		if left := w.traces(1); len(left) > 0 {
			t.Errorf("the cloud still has %v of the first reservation", left)
		}
	})
}

func TestAnInstanceThatWillNotGoKeepsTheEndAndIsNamed(t *testing.T) {
	w := running(t, reservation.OnEndShelve, "a", "b")
	w.stuck["own-b"] = true
	mustFail(t, w.finish(), fault.Conflict, "instance own-b (ACTIVE)", "on_end shelve")
	if _, err := w.boot("x", "anybody", w.plainFlavor(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if i, _ := w.guest("x"); i.Host != "a" {
		t.Errorf("another instance is on host %s before the end is over; only its host a is free", i.Host)
	}
	delete(w.stuck, "own-b")
	if err := w.begin(1, reservation.EndEvent); err != nil || len(w.traces(1)) > 0 {
		t.Errorf("the second attempt of the end: %v, left %v", err, w.traces(1))
	}
}

func TestAnOrderThatNovaRefusesIsSaidWithItsReason(t *testing.T) {
	w := running(t, reservation.OnEndShelve, "a", "b")
	w.fail["shelve"] = fault.New(fault.Conflict, "it cannot be shelved while it is in rescue")
	mustFail(t, w.finish(), fault.Conflict, "shelve instance own-", "while it is in rescue")
	if len(w.traces(1)) == 0 {
		t.Error("the layout was removed before the instances were gone")
	}
	w.fail["shelve"] = errors.New("EOF")
	w.pass(10)
	mustFail(t, w.begin(1, reservation.EndEvent), fault.Unavailable, "shelve instance own-", "will retry")
}

func TestTheEndDoesNotWaitForEverForAHostThatHasFailed(t *testing.T) {
	w := running(t, reservation.OnEndStop, "a", "b")
	w.ails["b"] = func(h *inventory.Host) { h.Problem = "its nova-compute is down" }
	w.stuck["own-b"] = true
	if err := w.finish(); err != nil || len(w.traces(1)) > 0 {
		t.Errorf("%v, left %v", err, w.traces(1))
	}
	if !strings.Contains(fmt.Sprint(w.given()), "stop own-b") {
		t.Error("the instance on the failed host has no order")
	}
}

func TestOnlyInstancesThatBearTheMarkOfTheReservationAreTouched(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.putStranger("other", "a", nil)
	w.putOwn(7, "of-another", "a")
	w.stray = []inventory.Instance{{ID: "other", Host: "a", Status: "ACTIVE"}}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"other", "of-another"} {
		if i, there := w.guest(name); !there || i.Status != "ACTIVE" {
			t.Errorf("%s got an order", name)
		}
	}
}

func TestInDoubtAnEndIsCarriedOut(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.untrusted = "half of the hosts are missing"
	if err := w.finish(); err != nil || len(w.traces(1)) > 0 {
		t.Errorf("%v, left %v", err, w.traces(1))
	}
}

func TestAHostThatIsPromisedToOthersStaysInTheFence(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.book(2, 50_000, "a")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	l, _ := w.modelCloud.Layout(t.Context())
	if got := fmt.Sprint(l.Aggregates[fence.Aggregate].Hosts); got != "[a]" {
		t.Errorf("the fence has %s, want a", got)
	}
}

// Its first deletion may be lost.
func TestAnInstanceThatIsBeingDeletedIsWaitedForAndOrderedOnce(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.guests["own-a"].Status, w.guests["own-a"].Task = "SHUTOFF", "deleting"
	w.waited = func() { delete(w.guests, "own-a") }
	if err := w.finish(); err != nil || fmt.Sprint(w.given()) != "[delete own-a]" {
		t.Errorf("orders %v, %v; want one deletion", w.given(), err)
	}
}
