// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

func TestARemarkIsEnteredOnceAndOnlyBeforeTheStart(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r, err := s.bookings.Book(t.Context(), owner, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: at(3600), Duration: 600}, nil)
	if err != nil {
		t.Fatal(err)
	}
	remark := func(sentence string, want bool) {
		t.Helper()
		if changed, err := s.bookings.Remark(t.Context(), r.ID, sentence); changed != want || err != nil {
			t.Errorf("%q: changed %v, want %v: %v", sentence, changed, want, err)
		}
	}
	remark("late", true)
	remark("late", false)
	remark("in time", true)
	remark("late", true)
	for i := range 30 {
		remark(fmt.Sprint(i), true)
	}
	stored, err := s.memory.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	remarks := 0
	for _, e := range stored.Events {
		if e.Type == reservation.ImageEvent {
			remarks++
		}
	}
	if remarks != 20 || stored.Events[len(stored.Events)-1].Detail != "29" || stored.Span != r.Span || len(stored.Claims) != 1 {
		t.Errorf("with %d remarks the reservation is %+v", remarks, stored)
	}
	s.now.Store(int64(at(3601)))
	if _, failed := s.bookings.CarryOut(t.Context()); len(failed) > 0 {
		t.Fatal(failed)
	}
	remark("too late", false)
	if changed, err := s.bookings.Remark(t.Context(), "nobody's", "x"); changed || err != nil {
		t.Errorf("a remark on an unknown reservation: %v, %v", changed, err)
	}
}
