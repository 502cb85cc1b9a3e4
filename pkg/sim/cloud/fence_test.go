// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const booked = "11111111-0000-4000-8000-000000000000"

// reserved returns a reservation of host n1.
func (s *site) reserved(kind reservation.Kind) reservation.Reservation {
	now := span.At(s.now())
	r := reservation.Reservation{
		ID: booked, ProjectID: "p", Status: reservation.Active, Span: span.Span{Start: now, End: now.Add(3600)},
		Terms: reservation.Terms{Kind: kind, Quantity: 1},
	}
	claim := reservation.Claim{Host: "n1", Span: r.Span}
	if kind == reservation.Instances {
		r.Resources = resource.Vector{VCPUs: 2, MemoryMB: 1024}
		claim.Slices = 1
	}
	r.Claims = []reservation.Claim{claim}
	return r
}

// steps returns the steps to the layout that the reservations need.
func (s *site) steps(live ...reservation.Reservation) []fence.Step {
	s.t.Helper()
	list, err := s.source.Hosts(s.t.Context())
	s.must(err)
	hosts, err := inventory.NewSnapshot(list, nil, nil)
	s.must(err)
	layout, err := s.fence.Layout(s.t.Context())
	s.must(err)
	return fence.Diff(layout, fence.Desired(live, hosts, span.At(s.now()), fence.Rules{Ahead: fence.Forever, Prepare: 60}))
}

func TestEveryStepMayBeDoneTwiceAndThenTheLayoutIsAsDesired(t *testing.T) {
	for _, kind := range []reservation.Kind{reservation.Hosts, reservation.Instances} {
		s := newSite(t)
		for _, live := range [][]reservation.Reservation{{s.reserved(kind)}, nil} {
			for _, step := range s.steps(live...) {
				for range 2 {
					s.must(s.fence.Carry(t.Context(), step))
				}
			}
			if left := s.steps(live...); len(left) > 0 {
				t.Errorf("%s, %d reservations: these steps remain: %+v", kind, len(live), left)
			}
		}
	}
}

func TestAReservationsFlavorIsItsProjectsAloneAfterItsAdmission(t *testing.T) {
	s := newSite(t)
	r := s.reserved(reservation.Hosts)
	r.Status = reservation.Pending
	for _, step := range s.steps(r) {
		s.must(s.fence.Carry(t.Context(), step))
	}
	create := func(project string) error {
		_, err := s.Create(t.Context(), cloud.ServerRequest{Name: "a", ProjectID: project, Flavor: r.ID, Image: "debian"})
		return err
	}
	if err := create("q"); !fault.Is(err, fault.Invalid) {
		t.Errorf("another project uses the flavor: %v", err)
	}
	s.must(create("p"))
	required := func() bool {
		flavors, err := s.Flavors(t.Context())
		s.must(err)
		for _, f := range flavors {
			if f.ID == r.ID {
				return f.ExtraSpecs["trait:"+fence.Closed] == "required"
			}
		}
		t.Fatal("there is no flavor")
		return false
	}
	if !required() {
		t.Error("the flavor is open before the start")
	}
	s.must(s.fence.Admit(t.Context(), r))
	if required() {
		t.Error("the flavor is closed after the start")
	}
	s.must(s.fence.Expel(t.Context(), r))
	if err := create("p"); !fault.Is(err, fault.Invalid) {
		t.Errorf("after the end, the project uses the flavor: %v", err)
	}
}

func TestRoomsThatInstancesUseStay(t *testing.T) {
	s := newSite(t)
	r := s.reserved(reservation.Instances)
	for _, step := range s.steps(r) {
		s.must(s.fence.Carry(t.Context(), step))
	}
	s.must(s.fence.Admit(t.Context(), r))
	s.read()
	made, err := s.Create(t.Context(), cloud.ServerRequest{Name: "a", ProjectID: "p", Flavor: r.ID, Image: "debian"})
	s.must(err)
	if _, err := s.Placed(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Minute)
	s.is(made.ID, "ACTIVE", "", "n1")
	if of, err := s.fence.Of(t.Context(), r); err != nil || len(of) != 1 {
		t.Errorf("the instances of the reservation are %v, %v", of, err)
	}
	refused := false
	for _, step := range s.steps() {
		err := s.fence.Carry(t.Context(), step)
		refused = refused || step.Action == fence.RemoveRooms && fault.Is(err, fault.Conflict)
	}
	if !refused {
		t.Error("rooms that an instance uses are removed")
	}
}
