// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// line is the connection to the cloud. It counts calls, can be cut, and fails the test if a
// promise is broken.
type line struct {
	*modelCloud
	town *town

	mu     sync.Mutex
	calls  map[string]int // by kind: "layout", "carry", "admit", "expel", "on", "of", "order"
	budget int            // calls until the line is cut; negative means never
	slow   func(kind string)
	wrong  map[string]error     // by kind, the error that the call returns without an effect
	stray  []inventory.Instance // instances that Of returns by mistake
	coming []inventory.Instance // instances under way to their Host, for On
}

var errCut = errors.New("the line is cut")

func (l *line) call(kind string) error {
	if l.slow != nil {
		l.slow(kind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget == 0 {
		return errCut
	}
	l.budget--
	l.calls[kind]++
	return l.wrong[kind]
}

func (l *line) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[kind]
}

func (l *line) Layout(ctx context.Context) (fence.Layout, error) {
	if err := l.call("layout"); err != nil {
		return fence.Layout{}, err
	}
	return l.modelCloud.Layout(ctx)
}

func (l *line) Carry(ctx context.Context, step fence.Step) error {
	if err := l.call("carry"); err != nil {
		return err
	}
	return l.modelCloud.Carry(ctx, step)
}

func (l *line) Admit(ctx context.Context, r reservation.Reservation) error {
	if err := l.call("admit"); err != nil {
		return err
	}
	l.town.checkAdmission(r)
	return l.modelCloud.Admit(ctx, r)
}

func (l *line) Expel(ctx context.Context, r reservation.Reservation) error {
	if err := l.call("expel"); err != nil {
		return err
	}
	return l.modelCloud.Expel(ctx, r)
}

func (l *line) On(ctx context.Context, host string) ([]inventory.Instance, error) {
	if err := l.call("on"); err != nil {
		return nil, err
	}
	list, err := l.modelCloud.On(ctx, host)
	for _, i := range l.coming {
		if i.Host == host {
			list = append(list, i)
		}
	}
	return list, err
}

func (l *line) Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error) {
	if err := l.call("of"); err != nil {
		return nil, err
	}
	list, err := l.modelCloud.Of(ctx, r)
	return append(list, l.stray...), err
}

func (l *line) Order(ctx context.Context, i inventory.Instance, order upkeep.Order) error {
	if err := l.call("order"); err != nil {
		return err
	}
	l.town.checkOrder(i, order)
	return l.modelCloud.Order(ctx, i, order)
}

// checkAdmission checks that no owner is admitted to a host with instances of others.
func (w *town) checkAdmission(r reservation.Reservation) {
	for _, h := range w.snapshot().Hosts() {
		mine := slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == h.Name && c.Span.Contains(w.Now()) })
		for _, i := range h.Instances {
			if mine && h.Failure() == "" && i.ReservationID() != r.ID && !w.shares(r, i, h.Name) {
				w.t.Errorf("reservation %s is admitted to host %s while instance %s runs there", r.ID, h.Name, i.ID)
			}
		}
	}
}

// shares reports whether the instance belongs to a reservation that shares the host with r.
func (w *town) shares(r reservation.Reservation, i inventory.Instance, host string) bool {
	other, live := w.Reservation(i.ReservationID())
	return live && r.Kind == reservation.Instances && other.Kind == reservation.Instances &&
		slices.ContainsFunc(other.Claims, func(c reservation.Claim) bool { return c.Host == host && c.Span.Contains(w.Now()) })
}

// checkOrder checks that no instance gets an order without a right.
func (w *town) checkOrder(i inventory.Instance, order upkeep.Order) {
	left := false // by a reservation that is over
	if n := i.ReservationID(); n != "" {
		r, live := w.Reservation(n)
		over := r.Status == reservation.Ending || r.ID != "" && !live
		if over && (string(order) == string(r.OnEnd) || r.OnEnd == reservation.OnEndDelete && order == upkeep.OrderStop) {
			return
		}
		left = r.Status == reservation.Ended || r.Status == reservation.Canceled
		if live && slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == i.Host }) {
			w.t.Errorf("instance %s of reservation %s, which is %s, gets the order %s", i.ID, r.ID, r.Status, order)
			return
		}
	}
	switch {
	case w.untrusted != "":
		w.t.Errorf("in doubt, instance %s gets the order %s", i.ID, order)
	case left && (!i.Preemptible || w.rules.Preemptible == upkeep.OrderWait):
		if confirms := i.Status == "VERIFY_RESIZE" && order == upkeep.OrderMigrate; order != w.rules.Left && !confirms && (w.rules.Left != upkeep.OrderMigrate || order != upkeep.OrderShelve) {
			w.t.Errorf("instance %s, left by its reservation, gets the order %s", i.ID, order)
		}
	case i.Locked:
		w.t.Errorf("instance %s is locked, but gets the order %s", i.ID, order)
	case i.Preemptible && order != w.rules.Preemptible, !i.Preemptible && order != w.rules.Normal:
		w.t.Errorf("instance %s, preemptible %v, gets the order %s", i.ID, i.Preemptible, order)
	}
}
