// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// mirrored runs reservation 1 on host a, in a town with mirrors.
func mirrored(t *testing.T) *town {
	w := newTown(t, "a", "b")
	w.rules.Fence.Mirror = "freepool"
	w.restart()
	w.prepare()
	w.start(1, reservation.OnEndDelete, "a")
	return w
}

// members returns the hosts of an aggregate; "none" if there is no aggregate of that name.
func (w *town) members(name string) string {
	l, err := w.modelCloud.Layout(w.ctx())
	if err != nil {
		w.t.Fatalf("look: %v", err)
	}
	a, there := l.Aggregates[name]
	if !there {
		return "none"
	}
	return strings.Join(a.Hosts, " ")
}

func TestMirrorsFollowAReservationFromItsStartToItsEnd(t *testing.T) {
	w := mirrored(t)
	check := func(when, free, own string) {
		t.Helper()
		if w.members("freepool") != free || w.members(id(1)) != own {
			t.Errorf("%s, the free pool has %s, the reservation %s; want %s and %s", when, w.members("freepool"), w.members(id(1)), free, own)
		}
	}
	check("while it starts", "a b", "none")
	w.putStranger("late", "a", nil) // a mirror keeps nobody off, and waits for nobody
	w.prepare()
	check("when it is active", "b", "a")
	w.lose("late")
	w.prepare()
	check("without a change", "b", "a")
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	check("when it has ended", "a b", "none")
}

func TestAMirrorThatSomebodyDeletedIsThereAgain(t *testing.T) {
	w := mirrored(t)
	w.prepare()
	for _, name := range []string{"freepool", id(1)} {
		w.modelCloud.mu.Lock()
		delete(w.aggregates, name)
		w.modelCloud.mu.Unlock()
	}
	w.prepare()
	if w.members("freepool") != "b" || w.members(id(1)) != "a" {
		t.Errorf("the free pool has %s, the reservation %s", w.members("freepool"), w.members(id(1)))
	}
}

func TestTheMirrorOfACanceledReservationGoes(t *testing.T) {
	w := mirrored(t)
	w.prepare()
	w.cancel(1)
	for range 6 { // the owner's instance leaves meanwhile
		w.pass(60)
		w.prepare()
	}
	if w.members("freepool") != "a b" || w.members(id(1)) != "none" {
		t.Errorf("the free pool has %s, the reservation %s", w.members("freepool"), w.members(id(1)))
	}
}

func TestAHostInMirrorsIsNoFinding(t *testing.T) {
	w := newPractice(t, whole("r1", "a"))
	w.doctor.Rules.Mirror = "freepool"
	w.lay()
	w.want("the findings are", w.found())
	w.carry(fence.Step{Action: fence.RemoveHost, Aggregate: inventory.Aggregate{Name: "r1"}, Host: "a"})
	w.want("the findings are", w.found(), "missing r1")
	w.want("the fix", w.fix(), "missing r1: fixed")
}
