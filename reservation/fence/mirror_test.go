// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// inPool returns three hosts of the pool, and one outside.
func inPool(t *testing.T) *inventory.Snapshot {
	hosts := []inventory.Host{host("a", 1, 1, 1), host("b", 1, 1, 1), host("c", 1, 1, 1), host("outside", 1, 1, 1)}
	for i := range hosts[:3] {
		hosts[i].Reservable = true
	}
	return snapshot(t, hosts...)
}

func TestAnActiveReservationOfHostsHasAMirrorAndTheFreePoolTheOtherHosts(t *testing.T) {
	for name, c := range map[string]struct {
		r    reservation.Reservation
		rest []string // in the free pool
		own  []string
	}{
		"pending":                 {during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Pending), []string{"a", "b", "c"}, nil},
		"starting":                {during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Starting), []string{"a", "b", "c"}, nil},
		"active":                  {during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Active), []string{"b", "c"}, []string{"a"}},
		"active outside":          {during(booked("r1", "outside"), span.Span{Start: start, End: end}, reservation.Active), []string{"a", "b", "c"}, []string{"outside"}},
		"ending":                  {during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Ending), []string{"b", "c"}, []string{"a"}},
		"ended":                   {during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Ended), []string{"a", "b", "c"}, nil},
		"of instances and active": {during(shared("r1", 1, "a"), span.Span{Start: start, End: end}, reservation.Active), []string{"a", "b", "c"}, nil},
	} {
		l := fence.Desired([]reservation.Reservation{c.r}, inPool(t), start, fence.Rules{Ahead: fence.Forever, Mirror: "freepool"})
		if free := l.Aggregates["freepool"]; !slices.Equal(free.Hosts, c.rest) || !fence.IsMirror(free) || free.Zone != "" {
			t.Errorf("%s: the free pool is %+v, want %v", name, free, c.rest)
		}
		own, there := l.Aggregates["r1"]
		if there != (c.own != nil) || !slices.Equal(own.Hosts, c.own) {
			t.Errorf("%s: its mirror is %+v, want %v", name, own, c.own)
		}
		if want := (map[string]string{"almanac:mirror": "r1", "blazar:owner": "project-of-r1"}); there && !maps.Equal(own.Metadata, want) {
			t.Errorf("%s: its mirror has the metadata %v, want %v", name, own.Metadata, want)
		}
	}
}

func TestMirrorsBelongToTheirReservationsAndGoWhenTheyAreSwitchedOff(t *testing.T) {
	live := []reservation.Reservation{during(booked("r1", "a"), span.Span{Start: start, End: end}, reservation.Active)}
	on := fence.Desired(live, inPool(t), start, fence.Rules{Ahead: fence.Forever, Mirror: "freepool"})
	off := fence.Desired(live, inPool(t), start, fence.Rules{Ahead: fence.Forever})
	whose := func(steps []fence.Step) map[fence.Action][]string {
		list := map[fence.Action][]string{}
		for _, s := range steps {
			list[s.Action] = append(list[s.Action], s.Aggregate.Name+" "+s.Host+" of "+s.Reservation)
			if s.Mirrors() != (s.Aggregate.Name == "r1") {
				t.Errorf("%s counts as a mirror of a reservation: %v", s.Summary(), s.Mirrors())
			}
		}
		return list
	}
	if got, want := whose(fence.Diff(off, on)), (map[fence.Action][]string{
		fence.CreateAggregate: {"freepool  of ", "r1  of r1"}, fence.AddHost: {"freepool b of ", "freepool c of ", "r1 a of r1"},
	}); !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("switched on, the steps are %v, want %v", got, want)
	}
	if got, want := whose(fence.Diff(on, off)), (map[fence.Action][]string{
		fence.RemoveHost: {"freepool b of ", "freepool c of ", "r1 a of r1"}, fence.DeleteAggregate: {"freepool  of ", "r1  of r1"},
	}); !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("switched off, the steps are %v, want %v", got, want)
	}
}
