// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// drift is a change that someone makes without Almanac.
type drift struct {
	name string
	do   func(l *lab, r reservation.Reservation, layout fence.Layout)
	want fence.Action // the action that repairs it
}

var drifts = []drift{
	{"the aggregate is deleted", func(l *lab, r reservation.Reservation, layout fence.Layout) {
		a := layout.Aggregates[fence.AggregatePrefix+r.ID]
		for _, host := range a.Hosts {
			l.leave(a, host)
		}
		l.admin.Must("DELETE", "compute", fmt.Sprintf("/os-aggregates/%d", a.ID), nil, nil)
	}, fence.CreateAggregate},
	{"the aggregate loses its metadata", func(l *lab, r reservation.Reservation, layout fence.Layout) {
		l.act(layout.Aggregates[fence.AggregatePrefix+r.ID], "set_metadata", map[string]any{"metadata": map[string]any{inventory.ReservationMark: nil}})
	}, fence.MarkAggregate},
	{"a host leaves the aggregate", func(l *lab, r reservation.Reservation, layout fence.Layout) {
		l.leave(layout.Aggregates[fence.AggregatePrefix+r.ID], r.Claims[0].Host)
	}, fence.AddHost},
	{"a host leaves the fence", func(l *lab, r reservation.Reservation, layout fence.Layout) {
		l.leave(layout.Aggregates[fence.Aggregate], r.Claims[0].Host)
	}, fence.AddHost},
	{"Placement forgets that a host is in the fence", func(l *lab, r reservation.Reservation, _ fence.Layout) {
		l.provide(r.Claims[0].Host, "aggregates", []string{})
	}, fence.AddHost},
	{"a host loses all its traits", func(l *lab, r reservation.Reservation, _ fence.Layout) {
		l.provide(r.Claims[0].Host, "traits", []string{"COMPUTE_NODE"})
	}, fence.AddTraits},
	{"the flavor is deleted", func(l *lab, r reservation.Reservation, _ fence.Layout) {
		l.admin.Must("DELETE", "compute", "/flavors/"+r.ID, nil, nil)
	}, fence.CreateFlavor},
	{"the flavor loses a required trait", func(l *lab, r reservation.Reservation, _ fence.Layout) {
		l.admin.Must("DELETE", "compute", "/flavors/"+r.ID+"/os-extra_specs/trait:"+fence.Reserved, nil, nil)
	}, fence.MarkFlavor},
}

func (l *lab) act(a inventory.Aggregate, action string, what any) {
	l.admin.Must("POST", "compute", fmt.Sprintf("/os-aggregates/%d/action", a.ID), map[string]any{action: what}, nil)
}

func (l *lab) leave(a inventory.Aggregate, host string) {
	l.act(a, "remove_host", map[string]string{"host": host})
}

// provide replaces a part of a host's provider. When the test ends, it restores what
// nova-compute had set.
func (l *lab) provide(host, what string, shall []string) {
	l.t.Helper()
	path := "/resource_providers/" + l.provider(host) + "/" + what
	var is map[string]any
	l.admin.Must("GET", "placement", path, nil, &is)
	before := is[what]
	is[what] = shall
	l.admin.Must("PUT", "placement", path, is, nil)
	if what != "traits" {
		return
	}
	l.t.Cleanup(func() {
		l.admin.Must("GET", "placement", path, nil, &is)
		is[what] = slices.DeleteFunc(before.([]any), func(trait any) bool { return strings.HasPrefix(trait.(string), fence.OwnPrefix) })
		l.admin.Must("PUT", "placement", path, is, nil)
	})
}

func TestWhatSomebodyChangesBehindOurBackIsSeenAndMended(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 2)
	l.lay(r)
	for _, d := range drifts {
		layout, err := l.cloud.Layout(t.Context())
		l.must(err)
		d.do(l, r, layout)
		steps := l.steps(r, true)
		if !slices.ContainsFunc(steps, func(s fence.Step) bool { return s.Action == d.want }) {
			t.Errorf("%s: the steps %v do not include %q", d.name, steps, d.want)
		}
		l.carry(steps)
		if left := l.steps(r, true); len(left) > 0 {
			t.Errorf("%s: after all steps, these steps remain: %+v", d.name, left)
		}
	}
}

// The test does not delete the child provider itself: Nova would not build on the host for
// minutes.
func TestLostRoomsAreSeenAndMended(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Instances, 1)
	l.lay(r)
	host := r.Claims[0].Host
	child, err := l.placement.ProviderNamed(t.Context(), fence.ProviderPrefix+host)
	l.must(err)
	l.admin.Must("DELETE", "placement", "/resource_providers/"+child+"/inventories", nil, nil)
	steps := l.steps(r, true)
	if len(steps) != 1 || steps[0].Action != fence.AddRooms {
		t.Errorf("the steps are %+v, want rooms to be added", steps)
	}
	l.carry(steps)
	layout, err := l.cloud.Layout(t.Context())
	l.must(err)
	if got := layout.Rooms[host][ownName(r.ID)]; got != 2 {
		t.Errorf("the host has %d rooms, want 2", got)
	}
}

func TestAStepOnAnAggregateThatWasMadeAnewFindsIt(t *testing.T) {
	l := newLab(t)
	r := l.reservation(reservation.Hosts, 1)
	l.lay(r)
	layout, err := l.cloud.Layout(t.Context())
	l.must(err)
	drifts[0].do(l, r, layout)
	old := layout.Aggregates[fence.AggregatePrefix+r.ID]
	var made struct{ Aggregate struct{ ID int } }
	l.admin.Must("POST", "compute", "/os-aggregates", map[string]any{"aggregate": map[string]string{"name": old.Name}}, &made)
	step := fence.Step{Action: fence.AddHost, Reservation: r.ID, Aggregate: old, Host: r.Claims[0].Host}
	l.carry([]fence.Step{step})
	layout, err = l.cloud.Layout(t.Context())
	l.must(err)
	if a := layout.Aggregates[old.Name]; a.ID != made.Aggregate.ID || !slices.Equal(a.Hosts, []string{step.Host}) {
		t.Errorf("the aggregate is %+v, want %d with the host", a, made.Aggregate.ID)
	}
}
