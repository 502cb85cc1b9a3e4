// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func warns(before int64) planning.Change { return planning.Change{BeforeEnd: &before} }

func ending(onEnd reservation.OnEnd) planning.Change { return planning.Change{OnEnd: &onEnd} }

// warnings returns when the warnings of r are due, and which of them are sent, in seconds after base.
func warnings(r reservation.Reservation) string {
	var list []string
	for _, e := range r.Events {
		if e.Type == reservation.BeforeEndEvent {
			list = append(list, fmt.Sprintf("%d %s", e.Time-base, e.State))
		}
	}
	return strings.Join(list, ", ")
}

func TestTheWarningMoves(t *testing.T) {
	for name, tc := range map[string]struct {
		now  int64
		do   []planning.Change
		want string
	}{
		"before the start":                       {50, []planning.Change{warns(30)}, "170 pending"},
		"longer than half of the time":           {50, []planning.Change{warns(99)}, "101 pending"},
		"longer than all of the time":            {50, []planning.Change{warns(100)}, ""},
		"never":                                  {50, []planning.Change{warns(0)}, ""},
		"never, and again":                       {50, []planning.Change{warns(0), warns(40)}, "160 pending"},
		"together with the end":                  {50, []planning.Change{{End: new(at(300)), BeforeEnd: new(int64(40))}}, "260 pending"},
		"to a time ahead":                        {150, []planning.Change{warns(30)}, "170 pending"},
		"to a time that has passed: at once":     {150, []planning.Change{warns(60)}, "140 done"},
		"as an extension to such a time":         {150, []planning.Change{{End: new(at(205)), BeforeEnd: new(int64(60))}}, "145 done"},
		"once sent, to a time ahead":             {185, []planning.Change{warns(10)}, "180 done, 190 pending"},
		"once sent, to a time that has passed":   {185, []planning.Change{warns(18)}, "180 done"},
		"once sent, to an earlier time":          {185, []planning.Change{warns(60)}, "180 done"},
		"once sent, to never, and to the past":   {185, []planning.Change{warns(0), warns(18)}, "180 done"},
		"once sent, and extended":                {185, []planning.Change{{End: new(at(300))}}, "180 done, 280 pending"},
		"once sent, and renamed":                 {185, []planning.Change{renamed("x")}, "180 done"},
		"once sent, for later, and then renamed": {185, []planning.Change{warns(10), renamed("x")}, "180 done, 190 pending"},
	} {
		s := newScene(t, named("a"))
		req := during(1, 100, 200)
		req.BeforeEnd = 20
		id := s.book(t, req).ID
		s.passTo(t, at(tc.now))
		for _, c := range tc.do {
			s.change(t, id, c)
			s.passTo(t, at(tc.now))
		}
		if got := warnings(s.get(t, id)); got != tc.want {
			t.Errorf("%s: the warnings are %q, want %q", name, got, tc.want)
		}
		s.check(t)
	}
}

func TestANegativeWarningIsNoChange(t *testing.T) {
	s := newScene(t, named("a"))
	id := s.book(t, during(1, 100, 200)).ID
	s.refuses(t, "negative", says(fault.Invalid, "must not be negative"), func() error {
		_, err := s.bookings.Change(t.Context(), owner, id, warns(-1))
		return err
	})
}

func TestWhatHappensAtTheEndChangesToWhatTheOperatorOffers(t *testing.T) {
	s := newScene(t, named("a"), func(o *booking.Options) {
		o.Defaults.OnEndChoices = []reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve}
	})
	id := s.book(t, during(1, 100, 200)).ID
	for _, now := range []int64{50, 150} {
		s.passTo(t, at(now))
		for _, unoffered := range []reservation.OnEnd{reservation.OnEndLeave, "explode", ""} {
			s.refuses(t, string(unoffered), func(err error) bool { return fault.Of(err).Field == "on_end" }, func() error {
				_, err := s.bookings.Change(t.Context(), owner, id, ending(unoffered))
				return err
			})
		}
		for _, offered := range []reservation.OnEnd{reservation.OnEndShelve, reservation.OnEndDelete} {
			if r := s.change(t, id, ending(offered)); r.OnEnd != offered {
				t.Errorf("it is %s, want %s", r.OnEnd, offered)
			}
		}
	}
	s.passTo(t, at(200))
	s.refuses(t, "at the end", says(fault.Conflict, "the reservation is ended"), func() error {
		_, err := s.bookings.Change(t.Context(), owner, id, ending(reservation.OnEndShelve))
		return err
	})
}

func TestMaintenanceHasNeitherAFilterNorInstances(t *testing.T) {
	s := newScene(t, named("a"))
	req := reservation.Request{Terms: reservation.Terms{Name: "disks", Maintenance: true}, Hosts: []string{"a"}, Start: at(100), End: at(200)}
	id := s.book(t, req).ID
	for field, c := range map[string]planning.Change{"on_end": ending(reservation.OnEndShelve), "host_properties": filtered(among([]string{"a"}))} {
		s.refuses(t, field, func(err error) bool { return fault.Is(err, fault.Invalid) && fault.Of(err).Field == field }, func() error {
			_, err := s.bookings.Change(t.Context(), owner, id, c)
			return err
		})
	}
	s.change(t, id, warns(30))
	req.OnEnd = reservation.OnEndDelete
	if _, err := s.bookings.Offer(t.Context(), owner, req); fault.Of(err).Field != "on_end" {
		t.Errorf("booked with on_end: %v", err)
	}
}

// What all reservations of a lease have in common is changed with the lease, unless there is one.
func TestTheWarningAndTheEndOfALeaseAreThoseOfAllItsReservations(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	several := s.lease(t, leaseOf(whole(1, 1), whole(1, 1)))
	id := several.Reservations[0].ID
	for what, c := range map[string]planning.Change{"the warning": warns(60), "the end": ending(reservation.OnEndShelve)} {
		s.refuses(t, what, says(fault.Conflict, fmt.Sprintf(`reservation "course" is one of the 2 parts of group "course", which begin, end and are canceled together; change the group with 'almanac group change %s'`, several.ID)), func() error {
			_, err := s.bookings.Change(t.Context(), owner, id, c)
			_, offered := s.bookings.OfferChange(t.Context(), owner, id, c)
			if fmt.Sprint(err) != fmt.Sprint(offered) {
				t.Errorf("%s: %v, but the offer %v", what, err, offered)
			}
			return err
		})
	}
	if r := s.change(t, id, planning.Change{BeforeEnd: new(int64(600)), OnEnd: new(reservation.OnEndDelete)}); r.Version != 1 {
		t.Errorf("what is so already is a change: %+v", r)
	}
	if r := s.change(t, id, filtered(among([]string{"c"}))); claimed(r)[0] != "c" || r.Membership.ResourceProperties != among([]string{"c"}) || r.Membership.HypervisorProperties != "" {
		t.Errorf("with a filter of its own: %+v", r)
	}
	one := s.lease(t, leaseOf(whole(1, 1)))
	id = one.Reservations[0].ID
	s.change(t, id, planning.Change{BeforeEnd: new(int64(60)), OnEnd: new(reservation.OnEndShelve)})
	lease := func() reservation.LeaseRecord {
		l, err := s.memory.Lease(t.Context(), one.ID)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := lease(); l.BeforeEnd != at(4140) || l.Version != 2 || l.Reservations[0].OnEnd != reservation.OnEndShelve || l.Reservations[0].BeforeEnd != 60 {
		t.Errorf("the lease is %+v", l)
	}
	s.change(t, id, planning.Change{End: new(at(5000)), BeforeEnd: new(int64(90))})
	if l := lease(); l.BeforeEnd != at(4910) || l.Reservations[0].BeforeEnd != 90 {
		t.Errorf("with another end: %+v", l)
	}
	s.change(t, id, warns(0))
	if l := lease(); l.BeforeEnd != 0 || warnings(l.Reservations[0]) != "" {
		t.Errorf("without a warning: %+v", l)
	}
	s.check(t)
}

func TestTheFlavorOfAReservationDecidesItsFilter(t *testing.T) {
	s := newScene(t, named("a", "b"))
	m := small(1)
	m.Membership.Flavor = `{"id": "7"}`
	id := s.lease(t, leaseOf(m)).Reservations[0].ID
	s.refuses(t, "a filter", says(fault.Conflict, "the flavor of the reservation decides which hosts match"), func() error {
		_, err := s.bookings.Change(t.Context(), owner, id, filtered(among([]string{"b"})))
		return err
	})
}
