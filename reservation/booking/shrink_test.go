// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// run places instances of the reservation id on a host; id may be unknown.
func (s *scene) run(t tester, host, id string, names ...string) {
	t.Helper()
	h := s.host(host)
	h.Instances = slices.Clone(h.Instances)
	for _, name := range names {
		h.Instances = append(h.Instances, inventory.Instance{
			ID: name, Host: host, Status: "ACTIVE", Flavor: inventory.Flavor{ExtraSpecs: map[string]string{inventory.ReservationMark: id}},
		})
	}
	h.InstanceCount = len(h.Instances)
	s.observe(t)
}

// inTheWay fails unless err is a conflict that contains the words.
func inTheWay(t *testing.T, err error, words ...string) {
	t.Helper()
	if !fault.Is(err, fault.Conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %s", err, word)
		}
	}
}

func TestAHostWithInstancesOfTheReservationIsNotGivenUp(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	r := s.running(t, during(3, 100, 200))
	s.run(t, "a", "somebody", "x", "y", "z")
	s.run(t, "b", r.ID, "i")
	s.run(t, "c", r.ID, "j", "k")
	r = s.change(t, r.ID, quantity(2))
	if diff := cmp.Diff([]string{"c", "b"}, claimed(r)); diff != "" {
		t.Errorf("the host without the reservation's instances goes first, whatever else runs there (-want +got):\n%s", diff)
	}
	before := s.stored(t)
	_, err := s.bookings.Change(t.Context(), owner, r.ID, quantity(1))
	inTheWay(t, err, "host b", "i", "delete")
	_, err = s.bookings.OfferChange(t.Context(), owner, r.ID, quantity(1))
	inTheWay(t, err, "host b")
	if diff := cmp.Diff(before, s.stored(t)); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	r = s.change(t, r.ID, ends(190)) // releases no host
	s.host("b").Instances, s.host("b").InstanceCount = nil, 0
	s.observe(t)
	if diff := cmp.Diff([]string{"c"}, claimed(s.change(t, r.ID, quantity(1)))); diff != "" {
		t.Errorf("after the instances are deleted (-want +got):\n%s", diff)
	}
	s.check(t)
}

func TestPlacesThatRunningInstancesUseAreNotGivenUp(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, cpus(4, 4, 100, 200))
	if diff := cmp.Diff([]string{"a×2", "b×2"}, claimed(r)); diff != "" {
		t.Fatalf("claims (-want +got):\n%s", diff)
	}
	s.run(t, "a", r.ID, "i")
	s.run(t, "b", r.ID, "j", "k")
	_, err := s.bookings.Change(t.Context(), owner, r.ID, quantity(2))
	inTheWay(t, err, "host", "delete")
	r = s.change(t, r.ID, quantity(3))
	got := claimed(r)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a×1", "b×2"}, got); diff != "" {
		t.Errorf("the unused slice goes first (-want +got):\n%s", diff)
	}
	s.check(t)
}

func TestAnExtensionDoesNotGiveUpAHostWithInstancesEither(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(2, 100, 200))
	s.book(t, only("a", during(1, 200, 400)))
	s.run(t, "a", r.ID, "i")
	_, err := s.bookings.Change(t.Context(), owner, r.ID, planning.Change{End: new(at(300)), Quantity: new(1)})
	inTheWay(t, err, "host a", "i")
}

func TestOfADegradedReservationTheFailedHostGoesFirstButNotWithItsInstances(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(2, 100, 200))
	s.run(t, "a", r.ID, "i")
	s.host("a").Problem = down
	s.observe(t)
	s.heal(t, r.ID, failing("a"), true)
	_, err := s.bookings.Change(t.Context(), owner, r.ID, quantity(1))
	inTheWay(t, err, "host a", "i")
	s.host("a").Instances, s.host("a").InstanceCount = nil, 0
	s.observe(t)
	if diff := cmp.Diff([]string{"b"}, claimed(s.change(t, r.ID, quantity(1)))); diff != "" {
		t.Errorf("after the instances are deleted (-want +got):\n%s", diff)
	}
}

func TestAPendingReservationMayGiveUpAnyHost(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(2, 100, 200))
	s.run(t, "b", r.ID, "i") // a pending reservation admits no instance
	if r = s.change(t, r.ID, quantity(1)); r.Status != reservation.Pending || len(r.Claims) != 1 {
		t.Errorf("the reservation is %s with %v", r.Status, claimed(r))
	}
}
