// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func TestEachChangedReservationOfALeaseGetsItsLeastBeforeOneGetsMore(t *testing.T) {
	for name, tc := range map[string]struct {
		members []reservation.MemberRequest
		bounds  [][2]int // the new ones; 0, 0 stays
		want    []int
	}{
		"the second needs two":            {[]reservation.MemberRequest{whole(1, 1), whole(1, 1)}, [][2]int{{1, 4}, {2, 2}}, []int{2, 2}},
		"the second gives one back":       {[]reservation.MemberRequest{whole(1, 1), whole(3, 3)}, [][2]int{{2, 2}, {2, 2}}, []int{2, 2}},
		"the first may have what is left": {[]reservation.MemberRequest{whole(1, 1), whole(3, 3)}, [][2]int{{1, 4}, {1, 1}}, []int{3, 1}},
		"the second may have fewer":       {[]reservation.MemberRequest{whole(1, 1), whole(3, 3)}, [][2]int{{2, 2}, {1, 3}}, []int{2, 2}},
		"three":                           {[]reservation.MemberRequest{whole(1, 1), whole(1, 1), whole(2, 2)}, [][2]int{{1, 3}, {2, 3}, {1, 1}}, []int{1, 2, 1}},
		"one stays":                       {[]reservation.MemberRequest{whole(1, 1), whole(1, 1), whole(1, 1)}, [][2]int{{1, 3}, {0, 0}, {2, 2}}, []int{1, 1, 2}},
	} {
		for _, begun := range []bool{false, true} {
			s := newScene(t, named("a", "b", "c", "d"))
			l := s.lease(t, leaseOf(tc.members...))
			if begun {
				if slices.ContainsFunc(tc.members, func(m reservation.MemberRequest) bool { return m.Max > 1 }) {
					continue // an active one cannot get fewer
				}
				s.passTo(t, at(600))
			}
			var c reservation.LeaseChange
			for i, b := range tc.bounds {
				if b != [2]int{} {
					c.Members = append(c.Members, bounds(l.Reservations[i].ID, b[0], b[1]).Members...)
				}
			}
			var got []int
			for _, r := range s.changeLease(t, l.ID, c).Reservations {
				got = append(got, r.Quantity)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s (begun: %t): they have %v, want %v", name, begun, got, tc.want)
			}
			s.check(t)
			s.checkLeases(t)
			s.restart(t)
			s.check(t)
		}
	}
}

func TestTheLeaseItselfIsNotInTheWayOfItsChange(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), whole(1, 1)))
	s.book(t, only("c", during(1, 700, 900)))
	c := bounds(l.Reservations[1].ID, 2, 2)
	c.End = new(at(4300))
	_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, c)
	want := []reservation.Block{{Host: "c", Span: span.Span{Start: at(700), End: at(900)}}}
	if diff := cmp.Diff(want, refusal(t, err).BlockedBy); diff != "" {
		t.Errorf("in the way (-want +got):\n%s", diff)
	}
	c.Members = bounds(l.Reservations[1].ID, 3, 3).Members
	if _, err = s.bookings.ChangeLease(t.Context(), owner, l.ID, c); len(refusal(t, err).BlockedBy) > 0 {
		t.Errorf("without the claims of others there is no room either: %+v", *refusal(t, err))
	}
}

func TestARefusalOfALeaseSuggestsNoFewerThanAnActiveReservationHas(t *testing.T) {
	s := newScene(t, named("a", "b"))
	l := s.lease(t, leaseOf(whole(2, 2)))
	s.book(t, only("b", during(1, 4200, 5000)))
	s.passTo(t, at(600))
	_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, timed(0, 4500))
	if r := refusal(t, err); r.LargestQuantity != 0 {
		t.Errorf("%d are suggested, and it cannot get fewer than 2: %v", r.LargestQuantity, r)
	}
}
