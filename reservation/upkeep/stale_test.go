// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

// In these tests, the state changes between the preparation's reading and its steps.

func TestPreparationClosesNoFlavorOfAReservationThatHasBecomeActive(t *testing.T) {
	for _, was := range []reservation.Status{reservation.Pending, reservation.Starting} {
		w := newTown(t, "a", "b")
		w.book(1, 0, "a")
		w.book(2, 100, "b") // the preparation looks at its host
		r, _ := w.Reservation(id(1))
		r.Status, r.Updated = reservation.Starting, w.Now()
		w.set(r)
		if err := w.Carry(t.Context(), r, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		r.Status = was
		w.set(r)
		w.slow = func(kind string) {
			if kind == "on" {
				r.Status = reservation.Active
				w.set(r)
			}
		}
		if err := w.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !w.admitted(1) {
			t.Errorf("the flavor of an active reservation, which was %s, is closed", was)
		}
	}
}

func TestPreparationOpensNoHostThatWasPromisedMeanwhile(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 5000, "a")
	w.prepare()
	w.cancel(1)
	w.book(3, 100, "b") // the preparation looks at its host
	first := true
	w.slow = func(kind string) {
		if kind != "on" || !first {
			return
		}
		first = false
		w.book(2, int64(w.Now()-noon), "a")
		if err := w.begin(2, reservation.StartEvent); err != nil {
			t.Errorf("start: %v", err)
		}
	}
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.shut("a") || !w.open(2, "a") {
		t.Errorf("host a of an active reservation: in the fence %v, open to its owner %v", w.shut("a"), w.open(2, "a"))
	}
}

func TestPreparationOpensNoHostToAnOwnerThatHasLostItMeanwhile(t *testing.T) {
	for _, kind := range []reservation.Kind{reservation.Hosts, reservation.Instances} {
		w := newTown(t, "a", "b", "c")
		w.bookKind(kind, 1, 0, "a")
		if err := w.begin(1, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		w.promise(1, "a", "b")
		w.slow = func(kind string) {
			if kind == "on" { // the preparation has decided to add host b
				w.promise(1, "a", "c")
			}
		}
		if err := w.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.open(1, "b") {
			t.Errorf("%s: the owner is admitted to host b, which the reservation no longer holds", kind)
		}
		w.slow = nil
		w.prepare()
		if !w.open(1, "c") {
			t.Errorf("%s: the owner is not admitted to host c", kind)
		}
	}
}

func TestAPromisedHostThatIsMissingFromAReadingStaysAsItIs(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := running(t, reservation.OnEndDelete, "a", "b")
		w.book(2, 5000, "c")
		w.prepare()
		w.gone["a"], w.gone["c"] = true, true
		if restarted {
			w.restart()
		}
		w.prepare()
		clear(w.gone)
		if !w.shut("a") || !w.shut("c") || !w.open(1, "a") {
			t.Errorf("restarted %v: in the fence a %v, c %v; a open to its owner %v",
				restarted, w.shut("a"), w.shut("c"), w.open(1, "a"))
		}
	}
}

func TestAHostThatIsMissingAndThatNobodyHoldsLeavesTheFence(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 5000, "a")
	w.prepare()
	w.cancel(1)
	w.gone["a"] = true
	w.prepare()
	if w.shut("a") {
		t.Error("host a is still in the fence")
	}
}
