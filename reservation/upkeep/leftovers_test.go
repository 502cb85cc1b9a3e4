// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

func TestWhatAReservationLeavesDoesNotTakeTheHostFromTheNextOne(t *testing.T) {
	for _, onEnd := range []reservation.OnEnd{reservation.OnEndLeave, reservation.OnEndStop} {
		for _, hinted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hinted %v", onEnd, hinted), func(t *testing.T) {
				w := newTown(t, "a")
				w.hinted = hinted
				w.start(1, onEnd, "a")
				w.book(2, 1000, "a") // starts at the end of the first
				if err := w.finish(); err != nil {
					t.Fatal(err)
				}
				if err := w.begin(2, reservation.StartEvent); err != nil {
					t.Errorf("the next reservation does not start: %v", err)
				}
				if i, there := w.guest("own-a"); !there || i.Host != "" {
					t.Errorf("the instance that was left exists %v, on host %q; want it shelved", there, i.Host)
				}
			})
		}
	}
}

// leftover returns a town where reservation 1 is over and has left own-a on host a, and
// reservation 2 has the host from 5,000 s after noon on.
func leftover(t *testing.T, onEnd reservation.OnEnd, left upkeep.Order) *town {
	w := newTown(t, "a", "b")
	w.rules.Left = left
	w.restart()
	w.start(1, onEnd, "a")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	w.book(2, 5000, "a")
	return w
}

func TestWhatAReservationHasLeftGoesTheGentlestWayThatIsConfigured(t *testing.T) {
	const far, lead, near = 4000, 4500, 4900 // seconds after noon, with 600 s of lead time and 120 s for evictions
	for name, tc := range map[string]struct {
		left   upkeep.Order
		change func(*inventory.Instance)
		at     int64
		want   string
	}{
		"nothing before the lead time":                    {upkeep.OrderMigrate, nil, far, "[]"},
		"it is migrated":                                  {upkeep.OrderMigrate, nil, lead, "[migrate own-a]"},
		"it is shelved where no time is left":             {upkeep.OrderMigrate, nil, near, "[shelve own-a]"},
		"shelved at once":                                 {upkeep.OrderShelve, nil, lead, "[shelve own-a]"},
		"deleted where the operator says so":              {upkeep.OrderDelete, nil, lead, "[delete own-a]"},
		"it stays where the operator says so":             {upkeep.OrderWait, nil, near, "[]"},
		"its owner's lock does not keep it":               {upkeep.OrderShelve, func(i *inventory.Instance) { i.Locked = true }, lead, "[shelve own-a]"},
		"it is left alone while Nova is busy with it":     {upkeep.OrderShelve, func(i *inventory.Instance) { i.Task = "rebuilding" }, lead, "[]"},
		"its move is confirmed when it has moved already": {upkeep.OrderShelve, func(i *inventory.Instance) { i.Status = "VERIFY_RESIZE" }, lead, "[migrate own-a]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := leftover(t, reservation.OnEndLeave, tc.left)
			if tc.change != nil {
				tc.change(&w.guests["own-a"].Instance)
			}
			w.pass(int64(noon.Add(tc.at) - w.Now()))
			w.prepare()
			if got := fmt.Sprint(w.given()); got != tc.want {
				t.Errorf("orders %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatShouldHaveBeenShelvedAtItsEndIsNotDeleted(t *testing.T) {
	w := leftover(t, reservation.OnEndShelve, upkeep.OrderDelete)
	orders := len(w.given())
	w.putOwn(1, "own-a", "a") // its owner has unshelved it, and Nova placed it on the same host
	w.pass(int64(noon.Add(4900) - w.Now()))
	w.prepare()
	if got := fmt.Sprint(w.given()[orders:]); got != "[shelve own-a]" {
		t.Errorf("orders %s, want it shelved", got)
	}
}

func TestAPreemptibleInstanceThatWasLeftGoesThoughPreemptibleOnesMayStay(t *testing.T) {
	w := leftover(t, reservation.OnEndLeave, upkeep.OrderShelve)
	w.rules.Preemptible = upkeep.OrderWait
	w.restart()
	w.guests["own-a"].Preemptible = true
	w.pass(int64(noon.Add(4900) - w.Now()))
	w.prepare()
	if !slices.Contains(w.given(), "shelve own-a") {
		t.Errorf("orders %v, want it shelved", w.given())
	}
}

func TestAnInstanceThatNoRecordKnowsToBeLeftIsNotTouched(t *testing.T) {
	for name, change := range map[string]func(*inventory.Instance){
		"its reservation has no record":           func(i *inventory.Instance) { i.Reservation = "nobody's" },
		"its hinted reservation never had a host": func(i *inventory.Instance) { i.Reservation = id(1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t, "a", "b")
			w.start(1, reservation.OnEndLeave, "b")
			if err := w.finish(); err != nil {
				t.Fatal(err)
			}
			w.book(2, 1000, "a")
			w.putStranger("x", "a", change)
			if err := w.begin(2, reservation.StartEvent); err == nil || len(w.given()) > 0 {
				t.Errorf("orders %v, %v; want none, and a start that waits", w.given(), err)
			}
		})
	}
}

func TestTheOwnerOfWhatWasLeftIsTold(t *testing.T) {
	w := leftover(t, reservation.OnEndLeave, upkeep.OrderShelve)
	var told []string
	w.TellLeft = func(_ context.Context, d upkeep.Departure) error {
		told = append(told, fmt.Sprintf("%s %s %v %s", d.Instance.ID, d.Order, d.Reservation == id(1), d.Instance.ProjectID))
		return nil
	}
	w.pass(int64(noon.Add(4900) - w.Now()))
	for range 3 {
		w.prepare()
	}
	if !slices.Equal(told, []string{"own-a shelve true p1"}) {
		t.Errorf("remarks %q, want exactly one", told)
	}
}
