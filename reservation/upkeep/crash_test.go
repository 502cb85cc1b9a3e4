// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// At each admission and each order, the town itself checks that no owner is admitted to a
// host with other instances, and that no instance is touched without a right.

func TestAStewardThatDiesAnywhereIsFollowedByOneWhoFinishesTheWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTown(t)
		next := w.book(2, 1000, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "next")...)
		w.pass(900)
		w.killed(t, "prepare", func() error { return w.Prepare(w.ctx()) })
		w.pass(int64(noon.Add(1000) - w.Now()))
		if rapid.Bool().Draw(t, "canceled") {
			w.cancel(1)
			w.killed(t, "clear up", func() error { return w.Prepare(w.ctx()) })
			for range 12 {
				w.prepare()
			}
		} else {
			w.killed(t, "end", func() error { return w.begin(1, reservation.EndEvent) })
		}
		if left := w.traces(1); len(left) > 0 {
			t.Fatalf("after the end, %v is left", left)
		}
		stays := w.strangersThatStay(next)
		if len(stays) > 0 {
			if err := w.begin(2, reservation.StartEvent); err == nil {
				t.Fatalf("the start succeeds although %v are on its hosts", stays)
			}
			return
		}
		w.killed(t, "start", func() error { return w.begin(2, reservation.StartEvent) })
		w.wellServed(next)
	})
}

// drawTown returns a town in which reservation 1 runs with instances, and strangers are on
// hosts. The failed hosts and the orders for strangers are random.
func drawTown(t *rapid.T) *town {
	w := newTown(t, "a", "b", "c", "z")
	w.rules.Normal = rapid.SampledFrom([]upkeep.Order{upkeep.OrderWait, upkeep.OrderMigrate}).Draw(t, "normal")
	w.rules.Preemptible = rapid.SampledFrom([]upkeep.Order{upkeep.OrderDelete, upkeep.OrderShelve, upkeep.OrderMigrate, upkeep.OrderWait}).Draw(t, "preemptible")
	w.rules.Left = rapid.SampledFrom([]upkeep.Order{upkeep.OrderMigrate, upkeep.OrderShelve, upkeep.OrderDelete, upkeep.OrderWait}).Draw(t, "left")
	w.rules.EndGrace = rapid.SampledFrom([]int64{0, 5, 60}).Draw(t, "grace")
	w.restart()
	w.hinted = rapid.Bool().Draw(t, "by hint")
	w.start(1, rapid.SampledFrom([]reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve, reservation.OnEndStop, reservation.OnEndLeave}).Draw(t, "on_end"), "a", "b")
	w.looks = rapid.IntRange(0, 3).Draw(t, "looks")
	for n, host := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "c", "c", "z"}), 0, 3).Draw(t, "strangers") {
		w.putStranger(fmt.Sprintf("stranger-%d", n), host, func(i *inventory.Instance) {
			i.Preemptible = rapid.Bool().Draw(t, "preemptible instance")
			i.Locked = rapid.IntRange(0, 3).Draw(t, "locked") == 0
		})
	}
	return w
}

// killed repeats do. In the first rounds, the line to the cloud is cut somewhere and a new
// enforcer without memory follows. In the end, do must succeed.
func (w *town) killed(t *rapid.T, what string, do func() error) {
	for _, budget := range rapid.SliceOfN(rapid.IntRange(0, 12), 0, 4).Draw(t, what+" is cut after") {
		w.budget = budget
		if err := do(); err == nil && what != "prepare" && what != "clear up" {
			w.budget = -1
			return
		}
		w.restart()
		w.pass(2)
	}
	w.budget = -1
	for range 5 {
		if do() == nil {
			return
		}
		w.pass(60)
	}
	t.Fatalf("%s never succeeds: %v", what, do())
}

// strangersThatStay returns the instances on the hosts of r that no order removes.
func (w *town) strangersThatStay(r reservation.Reservation) (names []string) {
	for name, g := range w.guests {
		order := w.rules.Normal
		if g.Preemptible {
			order = w.rules.Preemptible
		}
		nowhere := order == upkeep.OrderMigrate && !slices.ContainsFunc(w.hosts, func(h string) bool { return h != g.Host && w.takes(h, g.Flavor) })
		if over, _ := w.Reservation(g.ReservationID()); over.ID != "" { // an instance left by an earlier reservation goes, locked or not
			nowhere, order = false, w.rules.Left
		}
		here := slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == g.Host })
		if here && g.ReservationID() != r.ID && (g.Locked && g.ReservationID() == "" || order == upkeep.OrderWait || nowhere) {
			names = append(names, name)
		}
	}
	return names
}

// wellServed checks that the owner of r can use each of its hosts, and no other project can.
func (w *town) wellServed(r reservation.Reservation) {
	for _, host := range r.HostNames() {
		for name, g := range w.guests {
			if g.Host == host {
				w.t.Errorf("instance %s is on host %s when the owner is admitted", name, host)
			}
		}
		w.modelCloud.mu.Lock()
		if !w.takes(host, w.flavors[r.ID]) {
			w.t.Errorf("the scheduler does not place the owner's instances on host %s", host)
		}
		if w.takes(host, inventory.Flavor{}) {
			w.t.Errorf("the scheduler places other instances on host %s", host)
		}
		w.modelCloud.mu.Unlock()
	}
	if !w.admitted(2) {
		w.t.Errorf("the owner is not admitted")
	}
}
