// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

func TestADegradedReservationThatShrinksGivesBackWhatHasFailed(t *testing.T) {
	for name, now := range map[string]int64{"pending": 50, "active": 150} {
		for kind, req := range map[string]reservation.Request{"hosts": during(2, 100, 200), "instances": cpus(8, 2, 100, 200)} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := newScene(t, named("a", "b"))
				id := s.book(t, req).ID
				s.passTo(t, at(now))
				s.host("a").Problem, s.host("a").InstanceCount = down, 1
				s.observe(t)
				s.heal(t, id, failing("a"), true)
				if r := s.change(t, id, quantity(1)); len(r.Claims) != 1 || r.Claims[0].Host != "b" {
					t.Errorf("the reservation keeps %v, but host a is down", claimed(r))
				}
				if r := s.heal(t, id, failing("a"), true); r.Degraded != "" {
					t.Errorf("the reservation is still degraded: %s", r.Degraded)
				}
				s.check(t)
			})
		}
	}
}

func TestADegradedReservationGivesBackAHostThatHasLeftTheCloud(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(2, 100, 200))
	s.hosts = named("b")
	s.observe(t)
	s.heal(t, r.ID, failing("a"), true)
	if r := s.change(t, r.ID, quantity(1)); len(r.Claims) != 1 || r.Claims[0].Host != "b" {
		t.Errorf("the reservation keeps %v, but host a is gone", claimed(r))
	}
}

// The guests continue to run while nova-compute is down.
func TestAHostThatBlinksIsKeptForItsGuests(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(2, 100, 200))
	s.host("a").Problem, s.host("a").InstanceCount = down, 1
	s.observe(t)
	if r := s.change(t, r.ID, quantity(1)); len(r.Claims) != 1 || r.Claims[0].Host != "a" {
		t.Errorf("the reservation keeps %v, but its guest is on host a", claimed(r))
	}
}
