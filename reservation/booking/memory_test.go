// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func TestAMemoryThatForgetsKeepsWhatIsLive(t *testing.T) {
	s := newScene(t, named("a", "b"))
	over := s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 10})
	lasts := s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 100})
	s.passTo(t, at(10))
	s.memory.Forget()
	if _, err := s.memory.Get(t.Context(), over.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the reservation that is over: %v, want it to be forgotten", err)
	}
	if r, err := s.memory.Get(t.Context(), lasts.ID); err != nil || r.Status != reservation.Active {
		t.Errorf("the live reservation: %v %v", r.Status, err)
	}
	recalled, err := s.memory.Recall(t.Context(), booking.Recall{Since: 0})
	if err != nil || len(recalled.Log) != 0 {
		t.Errorf("the log after forgetting is %v %v", recalled.Log, err)
	}
	s.passTo(t, at(100))
	recalled, err = s.memory.Recall(t.Context(), booking.Recall{Since: 0})
	if err != nil || len(recalled.Log) != 1 || recalled.Log[0].ID != lasts.ID || recalled.Log[0].Place != 6 {
		t.Errorf("the log after one more change is %v %v, want the end of %s at place 6", recalled.Log, err, lasts.ID)
	}
}
