// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestAPreparedStartAsksItsHostsAndLetsTheOwnerIn(t *testing.T) {
	w := newTown(t, "a", "b", "c")
	w.book(1, 50, "a", "b")
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.pass(50)
	clear(w.calls)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.calls); got != "map[admit:1 on:2]" {
		t.Errorf("a prepared start of two hosts makes the calls %s, want two looks at hosts and one admission", got)
	}
	if host, err := w.boot("mine", "p1", id(1), w.Now()); err != nil || host != "a" {
		t.Errorf("the owner's instance went to %q: %v", host, err)
	}
}

func TestAStartThatWasNotPreparedMakesWhatItNeedsFirst(t *testing.T) {
	w := newTown(t, "a", "b", "c")
	w.book(1, 0, "b")
	w.book(2, 500, "c") // the start does not create the resources of reservation 2
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if host, err := w.boot("mine", "p1", id(1), w.Now()); err != nil || host != "b" {
		t.Errorf("the owner's instance went to %q: %v", host, err)
	}
	if left := w.traces(2); len(left) > 0 {
		t.Errorf("the start of reservation 1 created %v", left)
	}
}

func TestWhatOthersDestroyedIsSeenAfterAMinute(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 60, "a")
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.pass(60)
	delete(w.flavors, id(1))
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if _, err := w.boot("mine", "p1", id(1), w.Now()); err != nil {
		t.Errorf("the owner cannot use the reservation: %v", err)
	}
}

func TestFiftyStartsAtOnceShareTheirLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts []string
		for n := range 50 {
			hosts = append(hosts, fmt.Sprintf("cmp-%03d", n))
		}
		w := newTown(t, hosts...)
		w.slow = func(kind string) {
			if kind == "layout" {
				time.Sleep(time.Second)
			}
		}
		for n, host := range hosts {
			w.book(n, 0, host)
		}
		var starting sync.WaitGroup
		for n := range hosts {
			starting.Go(func() {
				if err := w.begin(n, reservation.StartEvent); err != nil {
					t.Errorf("start %d: %v", n, err)
				}
			})
		}
		starting.Wait()
		if looks := w.count("layout"); looks > 3 {
			t.Errorf("50 starts make %d looks, want at most 3", looks)
		}
	})
}

func TestALookServesOnlyThoseWhoAskedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "a", "b")
		w.book(1, 0, "a")
		first := true
		w.slow = func(kind string) {
			if kind == "layout" && first {
				first = false
				time.Sleep(time.Second)
			}
		}
		var both sync.WaitGroup
		both.Go(func() { _ = w.Prepare(t.Context()) })
		synctest.Wait() // the first start looks
		w.book(2, 0, "b")
		both.Go(func() {
			if err := w.begin(2, reservation.StartEvent); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if _, err := w.boot("mine", "p2", id(2), w.Now()); err != nil {
			t.Errorf("the owner of reservation 2 cannot use it: %v", err)
		}
	})
}

func TestAStartOnAnOccupiedHostIsLateAndSaysSo(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 0, "a", "b")
	w.putStranger("guest-17", "b", nil)
	mustFail(t, w.begin(1, reservation.StartEvent), fault.Conflict, "a host is occupied by an instance (ACTIVE) of another project", "the start waits")
	if w.admitted(1) || w.Now() != noon.Add(10) || len(w.given()) > 0 {
		t.Errorf("admitted %v after %d s, orders %v; want a wait of 10 s without orders", w.admitted(1), w.Now()-noon, w.given())
	}
	if detail := fault.Of(w.begin(1, reservation.StartEvent)).Message; strings.Contains(detail, "guest-17") || strings.Contains(detail, "tenant-9") {
		t.Errorf("the owner learns which instance it is: %s", detail)
	}
	if !strings.Contains(w.log.String(), "guest-17") {
		t.Error("the operator does not learn which instance it is")
	}
	delete(w.guests, "guest-17")
	if err := w.begin(1, reservation.StartEvent); err != nil || !w.admitted(1) {
		t.Errorf("after the stranger has gone: admitted %v, %v", w.admitted(1), err)
	}
}

func TestWhoOccupiesAHostIsNamedAsFarAsTheOwnerMayKnow(t *testing.T) {
	for words, change := range map[string]func(*inventory.Instance){
		"your instance x (ACTIVE), which does not belong to the reservation": func(i *inventory.Instance) { i.ProjectID = "p1" },
		"an allocation that only Placement knows":                            func(i *inventory.Instance) { i.Status, i.ProjectID = "", "" },
	} {
		w := newTown(t, "a")
		w.book(1, 0, "a")
		w.putStranger("x", "a", change)
		mustFail(t, w.begin(1, reservation.StartEvent), fault.Conflict, words)
	}
}

func TestAStartWaitsForAPreemptibleInstanceToGo(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 0, "a")
	w.putStranger("spot", "a", preemptible)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.given()); got != "[delete spot]" || w.Now() == noon {
		t.Errorf("orders %s, %d s later; want one, and a start that waited for it", got, w.Now()-noon)
	}
}

func TestAStartGoesWithTheHostsThatAreWell(t *testing.T) {
	w := newTown(t, "a", "b", "c")
	w.book(1, 0, "a", "b", "c")
	w.ails["b"] = func(h *inventory.Host) { h.Problem = "its nova-compute is down" }
	w.gone["c"] = true
	w.putStranger("stuck", "b", nil) // on a failed host, which healing replaces
	if err := w.begin(1, reservation.StartEvent); err != nil || !w.admitted(1) {
		t.Errorf("admitted %v: %v", w.admitted(1), err)
	}
}

func TestMaintenanceStartsOnHostsThatSleepHaveFailedOrAreGone(t *testing.T) {
	w := newTown(t, "a", "b", "c")
	w.maintain(1, 0, "a", "b", "c")
	w.ails["a"] = func(h *inventory.Host) { h.Problem = "its nova-compute is down" }
	w.ails["b"] = func(h *inventory.Host) { h.Power = inventory.PowerSleeping }
	w.gone["c"] = true
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Errorf("the maintenance did not start: %v", err)
	}
	for _, host := range []string{"a", "b"} {
		if got, err := w.boot("other-"+host, "p9", "small", w.Now()); err == nil {
			t.Errorf("an instance of somebody else went to %s", got)
		}
	}
}

func TestMaintenanceWaitsForInstancesThatAreNotPreemptible(t *testing.T) {
	w := newTown(t, "a", "b")
	w.maintain(1, 0, "a")
	w.putStranger("runs", "a", nil)
	mustFail(t, w.begin(1, reservation.StartEvent), fault.Conflict, "the start waits until it is gone")
	delete(w.guests, "runs")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Errorf("the maintenance of the empty host did not start: %v", err)
	}
}

func TestAStartWithoutAWellHostFails(t *testing.T) {
	for words, ail := range map[string]func(*town){
		"its nova-compute is down":        func(w *town) { w.ails["a"] = func(h *inventory.Host) { h.Problem = "its nova-compute is down" } },
		"it has left the cloud":           func(w *town) { w.gone["a"] = true },
		"is sleeping; the start waits u":  func(w *town) { w.ails["a"] = func(h *inventory.Host) { h.Power = inventory.PowerSleeping } },
		"is waking up; the start waits u": func(w *town) { w.ails["a"] = func(h *inventory.Host) { h.Power = inventory.PowerWaking } },
	} {
		w := newTown(t, "a", "b")
		w.book(1, 0, "a")
		ail(w)
		err := w.begin(1, reservation.StartEvent)
		mustFail(t, err, fault.Unavailable, "the start waits")
		if sentence := fault.Of(err).Message; !strings.Contains(err.Error(), "host a") || !strings.Contains(err.Error(), words) || strings.Contains(sentence, "host a") {
			t.Errorf("the operator reads %q, the owner %q; want %q, and the host for the operator only", err, sentence, words)
		}
		if w.admitted(1) {
			t.Errorf("the owner is admitted although the host %s", words)
		}
	}
}

// allLive returns a live reservation for every id.
type allLive struct{ upkeep.Promises }

func (allLive) Reservation(id string) (reservation.Reservation, bool) {
	return reservation.Reservation{ID: id}, true
}

func TestThatAStartWaitsForAHostToWakeIsToldOnceAndIsNoFailure(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 0, "a")
	w.ails["a"] = func(h *inventory.Host) { h.Power = inventory.PowerWaking }
	d, log := &bookings{fail: w.begin(1, reservation.StartEvent)}, &bytes.Buffer{}
	for _, j := range upkeep.Jobs(upkeep.Options{
		Booking: d, Promises: allLive{}, Keys: &keys{}, Replica: &replica{}, Presence: &shared{}, Leases: &shared{}, Log: slog.New(slog.NewTextHandler(log, nil)),
	}) {
		if j.Name != "events" {
			continue
		}
		for range 3 {
			if err := j.Step(t.Context()); err != nil {
				t.Errorf("the step fails: %v", err)
			}
		}
	}
	for _, id := range []string{"r-2", "r-3"} {
		if n := strings.Count(log.String(), "reservation="+id); n != 1 || !strings.Contains(log.String(), "it is host a") {
			t.Errorf("%s is reported %d times:\n%s", id, n, log)
		}
	}
}

func TestAStartThatComesAfterTheEndOrAfterTheCancellationLetsNobodyIn(t *testing.T) {
	w := newTown(t, "a")
	r := w.book(1, 0, "a")
	w.pass(1000)
	mustFail(t, w.begin(1, reservation.StartEvent), fault.Conflict, "the reservation ended before it had started")
	if w.admitted(1) {
		t.Error("the owner is admitted after its time")
	}
	w = newTown(t, "a")
	r = w.book(1, 0, "a")
	w.putStranger("x", "a", nil)
	w.waited = func() { r.Status = reservation.Canceled; w.set(r) }
	mustFail(t, w.begin(1, reservation.StartEvent), fault.Conflict, "was canceled")
}

func TestAReservationOfInstancesSharesItsHostsWithOthersOfItsKindOnly(t *testing.T) {
	for _, hinted := range []bool{false, true} {
		w := newTown(t, "a")
		w.hinted = hinted
		w.bookInstances(1, 0, "a")
		w.bookInstances(2, 10, "a")
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		w.putOwn(1, "own-1", "a")
		w.pass(10)
		if err := w.begin(2, reservation.StartEvent); err != nil || !w.admitted(2) {
			t.Errorf("beside the other reservation's instance, by hint %v: admitted %v, %v", hinted, w.admitted(2), err)
		}
		w.bookInstances(3, 20, "a")
		w.putStranger("x", "a", nil)
		w.pass(10)
		mustFail(t, w.begin(3, reservation.StartEvent), fault.Conflict, "a host is occupied by an instance (ACTIVE) of another project")
	}
}

func TestACloudThatDoesNotAnswerPutsTheStartOffWithASentence(t *testing.T) {
	for _, what := range []string{"layout", "carry", "on", "admit"} {
		w := newTown(t, "a")
		w.book(1, 0, "a")
		w.wrong[what] = errors.New("EOF")
		mustFail(t, w.begin(1, reservation.StartEvent), fault.Unavailable, "Almanac will retry")
		w.wrong[what] = fault.New(fault.Unavailable, "Nova does not answer")
		mustFail(t, w.begin(1, reservation.StartEvent), fault.Unavailable, "Nova does not answer")
		delete(w.wrong, what)
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Errorf("%s answers again: %v", what, err)
		}
	}
}

func TestTheWarningBeforeTheEndTakesNothingOnTheCloud(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	clear(w.calls)
	if err := w.begin(1, reservation.BeforeEndEvent); err != nil || len(w.calls) > 0 {
		t.Errorf("calls %v, %v", w.calls, err)
	}
}

func TestInDoubtAStartOnAFreeHostGoesOnAndNobodyIsToldToGo(t *testing.T) {
	w := newTown(t, "a", "b")
	w.untrusted = "half of the hosts are missing"
	w.book(1, 0, "a")
	w.book(2, 0, "b")
	w.putStranger("spot", "b", preemptible)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Error(err)
	}
	mustFail(t, w.begin(2, reservation.StartEvent), fault.Conflict, "occupied")
	if _, there := w.guest("spot"); !there {
		t.Error("in doubt the stranger was deleted")
	}
	w.untrusted = ""
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Errorf("after the doubt: %v", err)
	}
}

func TestAStartWaitsUntilTheOneBeforeHasGivenTheHostBack(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 0, "a")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	w.book(2, 1000, "a")
	w.pass(1000)
	mustFail(t, w.begin(2, reservation.StartEvent), fault.Conflict, "another reservation, which is ending, still holds a host")
	if err := w.begin(1, reservation.EndEvent); err != nil {
		t.Fatal(err)
	}
	if err := w.begin(2, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if _, err := w.boot("mine", "p2", id(2), w.Now()); err != nil {
		t.Errorf("the owner of reservation 2 cannot use it: %v", err)
	}
}

func TestAReservationOfInstancesWaitsForThoseOfOneWhoseTimeIsOver(t *testing.T) {
	w := newTown(t, "a")
	w.bookInstances(1, 0, "a")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	w.putOwn(1, "own-1", "a")
	w.bookInstances(2, 1000, "a")
	w.pass(1000)
	mustFail(t, w.begin(2, reservation.StartEvent), fault.Conflict, "a host is occupied")
}

func TestAStepThatOthersHaveOvertakenIsTriedOnceMore(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 0, "a")
	w.wrong["carry"] = fault.New(fault.Conflict, "the generation has changed")
	w.slow = func(kind string) {
		if kind == "layout" && w.calls["layout"] == 1 {
			delete(w.wrong, "carry")
		}
	}
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Error(err)
	}
}

func TestAStartDoesNotTrustALookAfterWhichItsThingsWereTakenAway(t *testing.T) {
	w := newTown(t, "a")
	r := w.book(1, 100, "a")
	w.prepare()
	moved := r
	moved.Span.Start = noon + 50_000
	moved.Claims = []reservation.Claim{{Host: "a", Span: moved.Span}}
	w.set(moved)
	w.budget = 2 // a look and one step, which deletes the flavor
	if err := w.Prepare(t.Context()); err == nil {
		t.Fatal("the line was not cut")
	}
	w.budget = -1
	w.pass(10)
	r.Span.Start = w.Now()
	r.Claims = []reservation.Claim{{Host: "a", Span: r.Span}}
	w.set(r)
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	if _, err := w.boot("mine", "p1", id(1), w.Now()); err != nil {
		t.Errorf("the owner cannot use the reservation: %v", err)
	}
}
