// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// These tests hold that the memory of a process does not grow with the reservations and hosts that
// it has served.

// readable is a cloud with an empty layout. during runs while the layout is read.
type readable struct {
	FenceBackend
	during func()
}

func (r *readable) Layout(context.Context) (fence.Layout, error) {
	r.during()
	return fence.Layout{}, nil
}

func TestAReadingReplacesTheRecordsOfChangesBeforeIt(t *testing.T) {
	cloud := &readable{during: func() {}}
	l := newLayoutCache(cloud, func() span.Instant { return 0 })
	read := func() {
		t.Helper()
		if _, err := l.fresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100 {
		l.outdate(fence.Step{Reservation: fmt.Sprint("r-", n), Host: fmt.Sprint("host-", n)})
	}
	read()
	if len(l.changed) > 0 {
		t.Errorf("%d reservations and hosts are still recorded after a reading of all", len(l.changed))
	}
	cloud.during = func() { l.outdate(fence.Step{Reservation: "r-1", Host: "host-1"}) }
	read()
	if _, ok := l.recent("r-1", nil); ok {
		t.Error("a reading counts as recent for a reservation that changed during it")
	}
	if _, ok := l.recent("r-2", []string{"host-1"}); ok {
		t.Error("a reading counts as recent for a host that changed during it")
	}
	if _, ok := l.recent("r-2", []string{"host-2"}); !ok {
		t.Error("a reading does not count as recent for what did not change")
	}
}

// sleepy is a booking in which the starts of all live reservations wait for a host to wake.
type sleepy struct {
	Booking
	Promises
	live map[string]bool
}

func (s sleepy) CarryOut(context.Context) ([]booking.Happening, map[string]error) {
	failed := map[string]error{}
	for id := range s.live {
		failed[id] = asleep("a", "the host sleeps")
	}
	return nil, failed
}

func (s sleepy) Reservation(id string) (reservation.Reservation, bool) {
	return reservation.Reservation{ID: id}, s.live[id]
}

func TestThatAStartHasWaitedIsForgottenWithItsReservation(t *testing.T) {
	s := sleepy{live: map[string]bool{"r-1": true, "r-2": true}}
	o, waiting := Options{Booking: s, Promises: s, Log: slog.New(slog.DiscardHandler)}, map[string]bool{}
	for _, want := range [][]string{{"r-1", "r-2"}, {"r-2"}} {
		if err := o.events(t.Context(), waiting); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(waiting)); !slices.Equal(got, want) {
			t.Errorf("%v are remembered, want %v", got, want)
		}
		delete(s.live, "r-1") // it was canceled
	}
}
