// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// inFence reports whether the host is in the fence's aggregate.
func (w *town) inFence(host string) bool {
	l, _ := w.modelCloud.Layout(w.ctx())
	return slices.Contains(l.Aggregates[fence.Aggregate].Hosts, host)
}

// lose makes an instance disappear.
func (w *town) lose(instance string) {
	w.modelCloud.mu.Lock()
	defer w.modelCloud.mu.Unlock()
	delete(w.guests, instance)
}

// runningInstances returns a town with a started reservation of one instance on each host,
// and the instances run.
func runningInstances(t *testing.T, onEnd reservation.OnEnd, hosts ...string) *town {
	t.Helper()
	w := newTown(t, "a", "b")
	r := w.bookInstances(1, 0, hosts...)
	r.OnEnd = onEnd
	w.set(r)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		if got, err := w.boot("own-"+host, "p1", id(1), w.Now()); err != nil || got != host {
			t.Fatalf("the owner's instance went to %q: %v", got, err)
		}
	}
	return w
}

func TestWhereInstancesStayTheEndComesToItsEnd(t *testing.T) {
	for _, onEnd := range []reservation.OnEnd{reservation.OnEndLeave, reservation.OnEndStop} {
		w := runningInstances(t, onEnd, "a")
		if err := w.finish(); err != nil {
			t.Fatalf("%s: %v", onEnd, err)
		}
		if got := fmt.Sprint(w.traces(1)); got != "["+fence.OwnName(id(1))+"]" || w.inFence("a") {
			t.Errorf("%s: left are %s, want only the class that the instance holds; in the fence: %v", onEnd, got, w.inFence("a"))
		}
	}
}

func TestWhatAnInstanceThatStaysHoldsIsClearedUpWhenItGoes(t *testing.T) {
	w := runningInstances(t, reservation.OnEndStop, "a", "b")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	w.modelCloud.mu.Lock()
	w.guests["own-a"].Status = "ACTIVE" // its owner has started it again
	w.modelCloud.mu.Unlock()
	orders := len(w.given())
	w.prepare()
	clear(w.calls)
	w.prepare()
	if got := w.count("carry") + w.count("of"); got > 0 {
		t.Errorf("%d calls while all instances stay, want none", got)
	}
	w.lose("own-b")
	w.pass(1000)
	w.prepare()
	if l, _ := w.modelCloud.Layout(t.Context()); len(l.Rooms["b"]) > 0 || len(l.Rooms["a"]) == 0 || len(w.given()) > orders {
		t.Errorf("rooms %v, orders %v", l.Rooms, w.given())
	}
	w.lose("own-a")
	w.prepare()
	if left := w.traces(1); len(left) > 0 {
		t.Errorf("the cloud still has %v", left)
	}
}

func TestWhatAnInstanceThatStaysHoldsKeepsNoFenceUp(t *testing.T) {
	w := runningInstances(t, reservation.OnEndLeave, "a")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	w.bookInstances(2, 1000, "a")
	w.pass(1)
	w.prepare()
	w.cancel(2)
	for range 3 {
		w.prepare()
	}
	if w.inFence("a") || len(w.traces(2)) > 0 {
		t.Errorf("in the fence: %v; the cloud still has %v", w.inFence("a"), w.traces(2))
	}
}

func TestPreparationGoesOnWhereInstancesRunOnAHostThatWasGivenUp(t *testing.T) {
	w := runningInstances(t, reservation.OnEndDelete, "a")
	r, _ := w.Reservation(id(1))
	r.Claims = []reservation.Claim{{Host: "b", Span: r.Span, Slices: 1}}
	w.set(r)
	for range 2 {
		w.prepare()
	}
	if l, _ := w.modelCloud.Layout(t.Context()); l.Rooms["b"][fence.OwnName(id(1))] != 1 {
		t.Errorf("rooms %v", l.Rooms)
	}
}

func TestAnEndThatPlacementRefusesLeavesTheHostInTheFence(t *testing.T) {
	w := runningInstances(t, reservation.OnEndDelete, "a")
	w.fail[string(fence.RemoveRooms)] = fault.New(fault.Conflict, "instances use the inventory")
	mustFail(t, w.finish(), fault.Conflict, "instances use the inventory")
	if !w.inFence("a") {
		t.Error("host a is open before its end is over")
	}
}

func TestAnInstanceThatWillNotGoKeepsOnlyItsOwnHost(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.lose("own-a")
	w.stuck["own-b"] = true
	if err := w.finish(); err == nil {
		t.Fatal("the end succeeds although an instance stays")
	}
	for range 2 {
		w.prepare()
		if w.inFence("a") || !w.inFence("b") {
			t.Fatalf("in the fence: a %v, b %v; want b alone", w.inFence("a"), w.inFence("b"))
		}
	}
	w.pass(86400)
	r, _ := w.Reservation(id(1))
	r.Status = reservation.Failed
	w.set(r)
	w.prepare()
	if w.inFence("a") || !w.inFence("b") {
		t.Errorf("after the end is given up: in the fence: a %v, b %v; want b alone", w.inFence("a"), w.inFence("b"))
	}
}

func TestTheNextOneStartsOnAHostThatIsFreeBeforeTheEndIsOver(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.lose("own-a")
	w.stuck["own-b"] = true
	w.book(2, 1000, "a")
	if err := w.finish(); err == nil {
		t.Fatal("the end succeeds although an instance stays")
	}
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if host, err := w.boot("mine", "p2", id(2), w.Now()); err != nil || host != "a" || !w.inFence("a") {
		t.Errorf("the owner's instance went to %q: %v; in the fence: %v", host, err, w.inFence("a"))
	}
}

func TestWhoIsAdmittedCanBootThoughTheOneBeforeIsBeingClearedUp(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.lose("own-a")
	w.stuck["own-b"] = true
	w.pass(100)
	w.cancel(1)
	w.book(2, 100, "a")
	if err := w.begin(2, reservation.StartEvent); err == nil {
		t.Error("the reservation starts on a host in the aggregate of another reservation")
	}
	w.prepare()
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if host, err := w.boot("mine", "p2", id(2), w.Now()); err != nil || host != "a" {
		t.Errorf("the owner's instance went to %q: %v", host, err)
	}
}

func TestWhileAnInstanceHasStillToBePlacedNoHostIsTakenBack(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.lose("own-a")
	w.stuck["own-b"] = true
	w.modelCloud.mu.Lock()
	w.guests["own-b"].Host, w.guests["own-b"].Status = "", "BUILD"
	w.modelCloud.mu.Unlock()
	if err := w.finish(); err == nil {
		t.Fatal("the end succeeds although an instance has no host yet")
	}
	if !w.inFence("a") || !w.inFence("b") {
		t.Errorf("in the fence: a %v, b %v", w.inFence("a"), w.inFence("b"))
	}
}

func TestAHostToWhichAnInstanceIsMovingIsNotTakenBack(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.lose("own-a")
	w.stuck["own-b"] = true
	w.coming = []inventory.Instance{{ID: "own-b", Host: "a"}}
	if err := w.finish(); err == nil {
		t.Fatal("the end succeeds although an instance is moving")
	}
	if !w.inFence("a") {
		t.Error("host a is open while an instance moves there")
	}
}

func TestAStartWaitsUntilItsHostHasLeftTheAggregateOfALaterOne(t *testing.T) {
	w := newTown(t, "a")
	w.book(3, 500, "a")
	w.prepare()
	r := w.book(2, 20, "a")
	r.Span = span.New(r.Span.Start, 300)
	r.Claims[0].Span = r.Span
	w.set(r)
	mustFail(t, w.begin(2, reservation.StartEvent), fault.Conflict, "still holds a host")
	w.prepare()
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if host, err := w.boot("mine", "p2", id(2), w.Now()); err != nil || host != "a" {
		t.Errorf("the owner's instance went to %q: %v", host, err)
	}
}

func TestAnEndLeavesTheFenceOfWhatAnotherReplicaHasBooked(t *testing.T) {
	w := newTown(t, "a", "b")
	w.bookInstances(1, 0, "a")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	w.pass(500)
	w.bookInstances(2, 500, "a")
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	delete(w.live, id(2)) // this replica does not know reservation 2 yet
	w.pass(500)
	if err := w.begin(1, reservation.EndEvent); err != nil {
		t.Fatal(err)
	}
	if l, _ := w.modelCloud.Layout(t.Context()); !w.inFence("a") || !slices.Contains(l.Traits["a"], fence.Shared) {
		t.Errorf("in the fence: %v; traits %v", w.inFence("a"), l.Traits["a"])
	}
}

func TestAnEndLeavesTheFenceOfWhatIsBookedMeanwhile(t *testing.T) {
	w := running(t, reservation.OnEndLeave, "a", "b")
	w.lose("own-a")
	w.lose("own-b")
	carries := 0
	w.slow = func(kind string) {
		if kind != "carry" {
			return
		}
		if carries++; carries == 1 {
			r := w.book(2, 1000, "a", "b")
			r.Span = span.New(w.Now(), 500)
			w.set(r)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if !w.inFence("a") || !w.inFence("b") {
		t.Errorf("in the fence: a %v, b %v", w.inFence("a"), w.inFence("b"))
	}
}

func TestAnEndOpensNoPromisedHostThatTheInventoryLacks(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.book(2, 2000, "a")
	w.gone["a"] = true
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	if !w.inFence("a") {
		t.Error("host a, which is promised to reservation 2, is open")
	}
}

func TestAPlaceWithMoreInstancesThanAreClaimedTakesNoOthers(t *testing.T) {
	w := newTown(t, "a")
	r := w.bookInstances(1, 0, "a")
	r.Quantity, r.Claims[0].Slices = 2, 2
	w.set(r)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	w.putOwn(1, "own-1", "a")
	w.putOwn(1, "own-2", "a")
	r, _ = w.Reservation(id(1))
	r.Quantity, r.Claims = 1, []reservation.Claim{{Host: "a", Span: r.Span, Slices: 1}}
	w.set(r)
	w.prepare()
	w.bookInstances(2, 20, "a")
	mustFail(t, w.begin(2, reservation.StartEvent), fault.Conflict, "occupied")
	w.lose("own-2")
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Error(err)
	}
}

func TestARescuedInstanceKeepsOneHostAtMost(t *testing.T) {
	w := running(t, reservation.OnEndShelve, "a", "b")
	w.looks = 0
	w.modelCloud.mu.Lock()
	w.guests["own-b"].Status = "RESCUE"
	w.modelCloud.mu.Unlock()
	mustFail(t, w.finish(), fault.Conflict, "own-b", "RESCUE")
	w.pass(60)
	mustFail(t, w.begin(1, reservation.EndEvent), fault.Conflict, "own-b", "RESCUE")
	if w.inFence("a") || !w.inFence("b") {
		t.Errorf("in the fence: a %v, b %v; want b alone", w.inFence("a"), w.inFence("b"))
	}
}

func TestAnEndDoesNotWaitForEverForWhatNovaNeverStops(t *testing.T) {
	for _, status := range []string{"RESCUE", "VERIFY_RESIZE"} {
		w := running(t, reservation.OnEndStop, "a", "b")
		w.looks = 0
		w.modelCloud.mu.Lock()
		w.guests["own-b"].Status = status
		w.modelCloud.mu.Unlock()
		mustFail(t, w.finish(), fault.Conflict, "stop instance own-b", status)
		w.pass(200)
		r, _ := w.Reservation(id(1))
		if err := w.Carry(t.Context(), r, reservation.EndEvent); err != nil || len(w.traces(1)) > 0 {
			t.Errorf("%s: %v, left %v", status, err, w.traces(1))
		}
		if strings.Contains(fmt.Sprint(w.given()), "own-b") {
			t.Errorf("orders %v", w.given())
		}
	}
}
