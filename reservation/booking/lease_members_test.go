// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestABoundGetsAPendingReservationAsMuchAsThereIs(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.lease(t, leaseOf(whole(1, 1)))
	l := s.lease(t, leaseOf(whole(1, 1)))
	id := l.Reservations[0].ID
	l = s.changeLease(t, l.ID, bounds(id, 1, 5))
	if r := l.Reservations[0]; r.Quantity != 2 || r.Membership.Max != 5 || r.Version != 2 || l.Version != 2 {
		t.Errorf("it has %d hosts, %+v", r.Quantity, r.Membership)
	}
	s.refuses(t, "more than there is", isRefusal, func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, bounds(id, 3, 5))
		return err
	})
	s.refuses(t, "less than nothing", says(fault.Invalid, "Max must be equal to or larger than min"), func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, bounds(id, 3, 2))
		return err
	})
	if l = s.changeLease(t, l.ID, bounds(id, 1, 1)); l.Reservations[0].Quantity != 1 {
		t.Errorf("it has %d hosts, want 1", l.Reservations[0].Quantity)
	}
	if l = s.changeLease(t, l.ID, timed(0, 4100)); l.Reservations[0].Quantity != 1 {
		t.Errorf("with other times it has %d hosts, want as before", l.Reservations[0].Quantity)
	}
	s.check(t)
}

func TestAPendingReservationOfALeaseMayBecomeAnother(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), small(2)))
	host, instances := l.Reservations[0], l.Reservations[1]
	filter := `["=", "$name", "c"]`
	l = s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{
		{ID: instances.ID, Resources: &resource.Vector{VCPUs: 4}, HostProperties: new(`["=", "$name", "a"]`)},
		{ID: host.ID, HostProperties: &filter, HypervisorProperties: new("as written"), ResourceProperties: new("also")},
	}})
	host, instances = l.Reservations[0], l.Reservations[1]
	if !slices.Equal(claimed(host), []string{"c"}) || host.HostProperties != filter || host.Membership.HypervisorProperties != "as written" || host.Membership.ResourceProperties != "also" {
		t.Errorf("the hosts are %v: %+v", claimed(host), host)
	}
	if !slices.Equal(claimed(instances), []string{"a×2"}) || instances.Resources.VCPUs != 4 {
		t.Errorf("the instances are on %v: %+v", claimed(instances), instances)
	}
	l = s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{
		{ID: instances.ID, HostProperties: new(""), Affinity: new(calendar.AffinitySame), Resources: &resource.Vector{VCPUs: 1}},
	}})
	if r := l.Reservations[1]; r.Affinity != calendar.AffinitySame || r.Quantity != 2 {
		t.Errorf("the instances are %+v", r)
	}
	s.check(t)
	s.restart(t)
	s.check(t)
}

func TestAReservationTakesWhatAnotherOfItsLeaseReleases(t *testing.T) {
	for _, limits := range []planning.Limits{{}, {Hosts: 3}, {HostSeconds: 3 * 3600}} {
		s := newScene(t, named("a", "b", "c"), limited(limits))
		l := s.lease(t, leaseOf(whole(2, 2), whole(1, 1)))
		first, second := l.Reservations[0], l.Reservations[1]
		c := bounds(first.ID, 1, 1)
		c.Members = append(c.Members, bounds(second.ID, 2, 2).Members...)
		l = s.changeLease(t, l.ID, c)
		if l.Reservations[0].Quantity != 1 || l.Reservations[1].Quantity != 2 {
			t.Errorf("%+v: they have %d and %d hosts", limits, l.Reservations[0].Quantity, l.Reservations[1].Quantity)
		}
		s.check(t)
		s.restart(t)
		s.check(t)
	}
}

func TestWholeHostsAndInstancesOfALeaseChangePlaces(t *testing.T) {
	on := func(host string) *string { return new(`["=", "$name", "` + host + `"]`) }
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(1, 1), small(2)))
	host, instances := l.Reservations[0].ID, l.Reservations[1].ID
	s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{{ID: host, HostProperties: on("a")}, {ID: instances, HostProperties: on("b")}}})
	l = s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{{ID: host, HostProperties: on("c")}, {ID: instances, HostProperties: on("a")}}})
	if got := append(claimed(l.Reservations[0]), claimed(l.Reservations[1])...); !slices.Equal(got, []string{"c", "a×2"}) {
		t.Errorf("they are on %v", got)
	}
	s.check(t)
}

func TestInstancesOfAnotherSizeHoldMoreOrLessOfTheSameHost(t *testing.T) {
	all := replicas(t, 2, named("a"))
	l := all[0].lease(t, leaseOf(small(2)))
	size := func(cpus int64) reservation.LeaseChange {
		return reservation.LeaseChange{Members: []reservation.MemberChange{{ID: l.Reservations[0].ID, Resources: &resource.Vector{VCPUs: cpus}}}}
	}
	if err := all[1].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	all[0].changeLease(t, l.ID, size(4)) // the whole host
	for _, s := range all {
		_, err := s.bookings.Book(t.Context(), owner, cpus(1, 1, 600, 4200), nil)
		refusal(t, err)
	}
	all[0].changeLease(t, l.ID, size(1))
	all[1].book(t, cpus(6, 1, 600, 4200))
	if _, err := all[0].bookings.ChangeLease(t.Context(), owner, l.ID, size(2)); !isRefusal(err) {
		t.Errorf("more than is left: %v, want a refusal", err)
	}
	agree(t, all)
	all[1].cancelLease(t, l.ID)
	agree(t, all)
}

func TestAnActiveReservationOfALeaseKeepsItsHostsAndOnlyGrows(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	l := s.lease(t, leaseOf(whole(2, 2)))
	r := l.Reservations[0]
	s.passTo(t, at(600))
	for what, c := range map[string]reservation.LeaseChange{
		"fewer hosts":      bounds(r.ID, 1, 1),
		"another filter":   {Members: []reservation.MemberChange{{ID: r.ID, HostProperties: new(`["=", "$name", "a"]`)}}},
		"another affinity": {Members: []reservation.MemberChange{{ID: r.ID, Affinity: new(calendar.AffinitySame)}}},
		"another size":     {Members: []reservation.MemberChange{{ID: r.ID, Resources: &resource.Vector{VCPUs: 1}}}},
	} {
		s.refuses(t, what, says(fault.Conflict, r.ID), func() error {
			_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, c)
			return err
		})
	}
	l = s.changeLease(t, l.ID, bounds(r.ID, 1, 3))
	if got := l.Reservations[0]; got.Quantity != 3 || !slices.Equal(claimed(got)[:2], claimed(r)) {
		t.Errorf("it has %v, want a host more than %v", claimed(got), claimed(r))
	}
	same := reservation.LeaseChange{End: new(at(5000)), Members: []reservation.MemberChange{{ID: r.ID, HostProperties: new("")}}}
	if l = s.changeLease(t, l.ID, same); l.Span.End != at(5000) {
		t.Errorf("with the same filter it ends at %v", l.Span.End)
	}
	s.check(t)
}

func TestADefaultThatIsStatedChangesNothing(t *testing.T) {
	s := newScene(t, named("a"))
	l := s.lease(t, leaseOf(small(1)))
	s.passTo(t, at(600))
	stated := reservation.MemberChange{
		ID: l.Reservations[0].ID, HostProperties: new(""), Affinity: new(calendar.Affinity("")),
		Resources: &resource.Vector{VCPUs: 1, Custom: map[string]int64{"CUSTOM_FPGA": 0}},
	}
	if l = s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{stated}}); l.Version != 1 {
		t.Errorf("the lease is %+v", l)
	}
}

func TestAnUnknownReservationOfALeaseIsNamed(t *testing.T) {
	s := newScene(t, named("a", "b"))
	l, other := s.lease(t, leaseOf(whole(1, 1))), s.lease(t, leaseOf(whole(1, 1)))
	foreign := other.Reservations[0].ID
	c := bounds(foreign, 1, 1)
	c.Members = append(c.Members, reservation.MemberChange{ID: "nobody"})
	s.refuses(t, "foreign reservations", says(fault.Invalid, "Invalid reservation IDs are: "+foreign+", nobody"), func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, c)
		return err
	})
	twice := bounds(l.Reservations[0].ID, 1, 1)
	twice.Members = append(twice.Members, twice.Members...)
	s.refuses(t, "one reservation twice", says(fault.Invalid, "more than once"), func() error {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, twice)
		return err
	})
}
