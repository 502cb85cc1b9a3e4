// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// studio implements upkeep.Imager. It records the orders.
type studio struct {
	instances map[string][]inventory.Instance // by reservation
	fails     map[string]error                // by instance
	ordered   []string
}

func (s *studio) Of(_ context.Context, r reservation.Reservation) ([]inventory.Instance, error) {
	return append([]inventory.Instance(nil), s.instances[r.ID]...), nil
}

func (s *studio) Snapshot(_ context.Context, i inventory.Instance, name string, since span.Instant) error {
	if err := s.fails[i.ID]; err != nil {
		return err
	}
	s.ordered = append(s.ordered, i.ID+" as "+name+" since "+since.String())
	return nil
}

func TestImagesAreMadeOfTheInstancesOfReservationsWhoseOwnersWantThemOnceTheyAreWarned(t *testing.T) {
	w := newTown(t, "a")
	at := func(n int, action string, status reservation.Status, warned reservation.EventState) {
		r := w.book(n, 0, "a")
		r.Status, r.Membership.EndAction = status, action
		r.Events = []reservation.Event{{Type: reservation.BeforeEndEvent, Time: noon.Add(int64(n)), State: warned}}
		w.set(r)
	}
	at(1, "snapshot", reservation.Active, reservation.EventDone)
	at(2, "snapshot", reservation.Active, reservation.EventDue)
	at(3, "default", reservation.Active, reservation.EventDone)
	at(4, "snapshot", reservation.Ending, reservation.EventDone)
	s := &studio{instances: map[string][]inventory.Instance{}, fails: map[string]error{}}
	for n := range 5 {
		s.instances[id(n)] = []inventory.Instance{
			{ID: "x", Name: "web", Reservation: id(n)}, {ID: "y", Name: "db", Reservation: id(n)}, {ID: "other's", Reservation: id(9)},
		}
	}
	job := upkeep.Snapshots(upkeep.SnapshotOptions{Images: s, Promises: w, Leases: &shared{}, Log: slog.New(slog.DiscardHandler)})
	step := func(what string, wantErr bool, want ...string) {
		t.Helper()
		s.ordered = nil
		if err := job.Step(t.Context()); (err != nil) != wantErr {
			t.Errorf("%s: %v", what, err)
		}
		if d := cmp.Diff(want, s.ordered); d != "" {
			t.Errorf("%s (-want +ordered):\n%s", what, d)
		}
	}
	first := " since " + noon.Add(1).String()
	s.fails["x"] = fault.New(fault.Conflict, "it is being resized")
	step("one instance cannot be imaged now", true, "y as reserved_db"+first)
	s.fails["x"] = errors.New("Nova is away")
	step("Nova fails", true, "y as reserved_db"+first)
	delete(s.fails, "x")
	step("Nova is back", false, "x as reserved_web"+first, "y as reserved_db"+first)
	step("all images are ordered", false)

	at(2, "snapshot", reservation.Active, reservation.EventDone)
	second := " since " + noon.Add(2).String()
	step("the next is warned", false, "x as reserved_web"+second, "y as reserved_db"+second)
	r, _ := w.Reservation(id(1))
	r.Events = append(r.Events, reservation.Event{Type: reservation.BeforeEndEvent, Time: noon.Add(500), State: reservation.EventDone})
	w.set(r)
	later := " since " + noon.Add(500).String()
	step("the first was extended, and is warned again", false, "x as reserved_web"+later, "y as reserved_db"+later)
}
